obj.spec.execution = "Run"
return obj
