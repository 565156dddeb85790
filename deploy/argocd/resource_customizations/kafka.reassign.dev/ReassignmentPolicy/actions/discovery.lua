local suspended = obj.spec.suspend == true
local digest = obj.status ~= nil and obj.status.digest or nil
local actions = {}
actions["suspend"] = {["disabled"] = suspended}
actions["resume"] = {["disabled"] = not suspended}
actions["approve"] = {["disabled"] = digest == nil or digest == obj.spec.approvedDigest}
return actions
