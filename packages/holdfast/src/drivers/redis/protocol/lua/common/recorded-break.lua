-- recordedBreak number kind reason note
--   Like breakGrant, with a record in the audit, a zset of at most 1 000 records: the last one of KEYS.
--   note   JSON: the key of the lock, the operator, the owner and the reason
--   Reply   as breakGrant; a third value is the id of the record, if there is one
--   Effects those of breakGrant. If the grant has ended, also the record "id time broken number note", whose score is its id
--
-- The record is written first, so that no break lacks it. An id is the time in microseconds, and at least 1 more than the last one.
local function recorded_break(perform, number, kind, reason, note)
  local audit = KEYS[#KEYS]
  local last = redis.call('ZRANGE', audit, -1, -1, 'WITHSCORES')[2]
  local id = digits(math.max(now, (tonumber(last) or 0) + 1))
  local record = table.concat({ id, digits(now), 'broken', number, note }, ' ')
  permit_writes()
  redis.call('ZADD', audit, id, record)
  local ok, answer = perform('breakGrant', number, kind, reason)
  if not ok or answer[1] == 0 then
    redis.call('ZREM', audit, record)
    if not ok then
      error(answer, 0)
    end
    return answer
  end
  if redis.call('ZCARD', audit) > 1000 then
    redis.call('ZPOPMIN', audit)
  end
  answer[3] = id
  return answer
end
