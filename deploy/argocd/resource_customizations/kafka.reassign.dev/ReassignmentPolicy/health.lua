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
if is.Stalled then
  return {status = "Degraded", message = told(is.Stalled)}
end
if is.Ready then  -- in force, also while a plan waits for approval: a sync goes on
  return {status = "Healthy", message = told(ready)}
end
if not is.Reconciling and ready.reason == "Suspended" then
  return {status = "Suspended", message = told(ready)}
end
return {status = "Progressing", message = ready.reason and told(ready) or "waits for the operator"}
