-- A replica refuses what writes. What was only read is not told there either: it may be old, and somebody may hold what seems ours.
local function require_primary(answer)
  if string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then
    return answer
  end
  return redis.error_reply('READONLY A replica is not asked for locks')
end
