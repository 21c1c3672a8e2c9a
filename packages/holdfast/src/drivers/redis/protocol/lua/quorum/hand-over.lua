-- Releases the token's lock, and grants it to the next waiter.
call('HDEL', fence, 'by')
local next_waiter = call('ZPOPMIN', queue)
local next_member = next_waiter[1]
if next_member and not grant_waiter then
  grant_waiter, write_grant = prepare(false)
end
if not next_member then
  if not next_waiter.err then
    answer, next_at = tonumber(call('DEL', lock_key, info)) and 1, first + 2
  end
elseif (string.byte(next_member, 67) or 58) > 57 then
  removed_waiter = next_waiter
else
  local ok, granted_token = pcall(grant_waiter, next_waiter)
  next_at = first + 2
  if not ok then
    answer = { 'error', type(granted_token) == 'table' and granted_token.err or tostring(granted_token) }
  elseif not granted_token then
    removed_waiter = { false }
  else
    answer = { 1, 0, granted_token }
  end
end
