-- Releases the token's lock if there are no waiters. The reply is 1. A waiter is removed from the queue for the general release.
local value = call('GETRANGE', lock_key, 0, 599)
if type(value) == 'string' and string.sub(value, 1, #token + 1) == token .. ' ' then
  local waiter = call('ZPOPMIN', queue)
  if waiter[1] then
    removed_waiter = waiter
  elseif not waiter.err then
    local is_marked = string.byte(value, -1) == 105
    answer, next_at = tonumber(is_marked and call('DEL', lock_key, info) or call('DEL', lock_key)) and 1, first + 3
  end
end
