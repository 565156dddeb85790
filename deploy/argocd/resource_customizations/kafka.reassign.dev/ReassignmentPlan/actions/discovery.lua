local suspended = obj.spec.suspend == true
local digest = obj.status ~= nil and obj.status.digest or nil
local actions = {}
actions["suspend"] = {["disabled"] = suspended}
actions["resume"] = {["disabled"] = not suspended}
actions["approve"] = {["disabled"] = digest == nil or digest == obj.spec.approvedDigest}
local makes_plans = {BrokerDecommission = true, ReassignmentPolicy = true}
for _, owner in ipairs(obj.metadata.ownerReferences or {}) do
  if owner.controller and makes_plans[owner.kind] then
    for name, action in pairs(actions) do
      action["disabled"] = true
      action["displayName"] = name .. " the " .. owner.kind .. " " .. owner.name .. " instead"
    end
  end
end
return actions
