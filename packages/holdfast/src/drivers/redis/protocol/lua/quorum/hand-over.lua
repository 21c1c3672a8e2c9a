-- A lock that is ours: to the next in line.
call('HDEL', fence, 'by')
local next_waiter = call('ZPOPMIN', queue)
local next_member = next_waiter[1]
if next_member and not offer then
  offer, put = define(false)
end
if not next_member then
  if not next_waiter.err then
    answer, behind = tonumber(call('DEL', K, info)) and 1, first + 2
  end
elseif (string.byte(next_member, 67) or 58) > 57 then
  popped = next_waiter
else
  local ok, taken = pcall(offer, next_waiter)
  behind = first + 2
  if not ok then
    answer = { 'error', type(taken) == 'table' and taken.err or tostring(taken) }
  elseif not taken then
    popped = { false }
  else
    answer = { 1, 0, taken }
  end
end
