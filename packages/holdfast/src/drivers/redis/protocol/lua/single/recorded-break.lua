-- recordedBreak number kind reason note
--   Like breakGrant, with a record in the audit, a zset of at most 1 000 records: the last one of KEYS.
--   note   JSON: the key of the lock, the operator, the owner and the reason
--   Reply   as breakGrant
--   Effects those of breakGrant; and the record "id time result number note", whose score is its id
--
-- The record is written first, so that no break lacks it. An id is the time in microseconds, and at least 1 more than the last one.
local function recorded_break(perform, number, kind, reason, note)
  local audit = KEYS[#KEYS]
  local last = redis.call('ZRANGE', audit, -1, -1, 'WITHSCORES')[2]
  local id = digits(math.max(now, (tonumber(last) or 0) + 1))
  local function record(result)
    return table.concat({ id, digits(now), result, number, note }, ' ')
  end
  local broken = record('broken')
  redis.call('ZADD', audit, id, broken)
  local ok, answer = perform('breakGrant', number, kind, reason)
  if not ok or answer[1] == 0 then
    redis.call('ZREM', audit, broken)
  end
  if not ok then
    error(answer, 0)
  elseif answer[1] == 0 then
    redis.call('ZADD', audit, id, record('not-held'))
  end
  if redis.call('ZCARD', audit) > 1000 then
    redis.call('ZPOPMIN', audit)
  end
  return answer
end
