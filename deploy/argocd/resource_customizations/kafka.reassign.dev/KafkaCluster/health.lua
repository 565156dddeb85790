local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "waits for the operator to see the change"}
end
local is, ready = {}, {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    ready = condition
  end
  if condition.status == "True" then
    is[condition.type] = condition
  end
end
local function told(condition)
  return condition.reason .. ": " .. condition.message
end
local bad = is.Stalled or (ready.reason == "ClusterUnreachable" and ready)
if bad then
  return {status = "Degraded", message = told(bad)}
end
if not is.Ready then
  return {status = "Progressing", message = ready.reason and told(ready) or "waits for the operator"}
end
if is.Paused then
  return {status = "Suspended", message = told(is.Paused)}
end
local warning = is.ThrottleDrift or is.NamespaceUnreadable or is.Unclaimed
return {status = "Healthy", message = told(warning or ready)}
