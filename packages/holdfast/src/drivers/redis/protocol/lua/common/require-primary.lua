-- Returns the reply on a primary, and an error on a replica. A replica's data may be outdated: another client may hold a lock that
-- seems to be the caller's.
local function require_primary(answer)
  if string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then
    return answer
  end
  return redis.error_reply('READONLY A replica does not serve locks')
end
