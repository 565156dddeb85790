obj.spec.execution = "Pause"
return obj
