local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "waits for the operator to see the change"}
end
local is, ready, goal_unmet = {}, {}, nil
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    ready = condition
  end
  if condition.type == "GoalMet" and condition.status ~= "True" then
    goal_unmet = condition
  end
  if condition.status == "True" then
    is[condition.type] = condition
  end
end
local function told(condition)
  return condition.reason .. ": " .. condition.message
end
local bad = is.Failed or is.Stalled
if bad then
  return {status = "Degraded", message = told(bad)}
end
local message = status.summary or ready.message or "waits for the operator"
if is.Ready then
  local warning = is.Drifted or goal_unmet
  return {status = "Healthy", message = warning and told(warning) or message}
end
if ready.reason == "Retired" then  -- it is over, and its owner goes on without it
  return {status = "Healthy", message = told(ready)}
end
local waits = {Suspended = true, OutsideWindow = true, AwaitingApproval = true}
if not is.Reconciling and waits[ready.reason] then
  return {status = "Suspended", message = told(ready)}
end
if ready.reason then
  message = ready.reason .. ": " .. message
end
return {status = "Progressing", message = message}
