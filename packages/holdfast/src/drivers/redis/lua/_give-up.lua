-- A lock that is ours: to the next in line. A passing on queues us again first. Its place is asked for before anybody is told: nothing
-- may fail after that.
local member = is_pass_on and operations[first + 1] .. ' ' .. operations[first + 2]
local is_ready = is_release
  or tonumber(call('ZADD', queue, 'NX', string.match(operations[first + 1], ':(%d+)$', 66), member))
    and call('PEXPIRE', queue, 60000) == 1
local next_waiter = is_ready and call('ZPOPMIN', queue) or {}
local next_member = next_waiter[1]
if next_member and not offer then
  offer, put = define(false)
end
if not next_member then
  if is_release and not next_waiter.err then
    answer, behind = tonumber(call('DEL', K, info)) and 1, first + 2
  end
elseif next_member == member then
  if operations[first + 5] == '' then
    token = operations[first + 1]
    local ok, number, last = pcall(put, token, operations[first + 3], operations[first + 4])
    answer, behind = ok and { 1, { 1, number, last, token } }, first + 6
  end
else
  local position = member and call('ZRANK', queue, member) or -1
  if not tonumber(position) or (string.byte(next_member, 67) or 58) > 57 then
    popped = next_waiter
  else
    local ok, taken, ttl = pcall(offer, next_waiter)
    behind = first + (is_release and 2 or 6)
    if not ok then
      answer = { 'error', type(taken) == 'table' and taken.err or tostring(taken) }
    elseif not taken then
      popped = { false }
    elseif is_release then
      answer = { 1, 0, '' }
    else
      answer = { 1, { 0, position < 3 and tonumber(ttl) or -3, position, taken, known_run_id } }
    end
  end
end
