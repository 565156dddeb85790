local execution = obj.spec.execution or "Run"
local actions = {}
actions["suspend"] = {["disabled"] = execution ~= "Run"}
actions["resume"] = {["disabled"] = execution == "Run"}
return actions
