local makes_plans = {BrokerDecommission = true, ReassignmentPolicy = true}
for _, owner in ipairs(obj.metadata.ownerReferences or {}) do
  if owner.controller and makes_plans[owner.kind] then
    error("only its owner's approval counts: approve the " .. owner.kind .. " " .. owner.name, 0)
  end
end
obj.spec.approvedDigest = obj.status.digest
return obj
