-- A lock that is ours and for which nobody waits. The answer is 1.
local value = call('GETRANGE', K, 0, 599)
if type(value) == 'string' and string.sub(value, 1, #token + 1) == token .. ' ' then
  local waiter = call('ZPOPMIN', queue)
  if waiter[1] then
    popped = waiter
  elseif not waiter.err then
    local is_marked = string.byte(value, -1) == 105
    answer, behind = tonumber(is_marked and call('DEL', K, info) or call('DEL', K)) and 1, first + 3
  end
end
