for _, owner in ipairs(obj.metadata.ownerReferences or {}) do
  if owner.controller and owner.kind == "BrokerDecommission" then
    error("only its owner's approval counts: approve the BrokerDecommission " .. owner.name, 0)
  end
end
obj.spec.approvedDigest = obj.status.digest
return obj
