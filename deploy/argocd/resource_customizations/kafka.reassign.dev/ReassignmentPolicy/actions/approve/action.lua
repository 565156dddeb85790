obj.spec.approvedDigest = obj.status.digest
return obj
