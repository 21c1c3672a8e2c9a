-- Another's lock that we wait for: a place in the queue.
if holder ~= token then
  local member = token .. ' ' .. operations[first + 1]
  local is_new = call('ZADD', queue, 'NX', string.match(token, ':(%d+)$', 66), member)
  local position = tonumber(is_new) and call('PEXPIRE', queue, 60000) == 1 and call('ZRANK', queue, member)
  if type(position) == 'number' and is_new == 1 and position >= queue_bound then
    call('ZREM', queue, member)
  elseif type(position) == 'number' then
    local left = (position < 3 or is_new == 0) and call('PTTL', K) or -3
    answer, behind = tonumber(left) and { 0, left, position, string.sub(holder, 1, 600), '' }, first + 6
  end
end
