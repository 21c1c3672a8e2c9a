-- What every operation sees: the time, the keys of the lock in turn, and who holds it as the operation begins.

local retention_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local K, queue, fence, info
local holder

-- The least number of a new grant. Alone it is the server's time, so numbers rise even where the counter was lost.
-- A quorum's client sends a candidate to all nodes; each keeps it within a second of its own time.
local is_quorum = ARGV[3] == '1'
local floor = now
local known_run_id

-- The candidate, kept within a second of the server's time.
local function near(candidate)
  return math.max(now - 1000000, math.min(now + 1000000, tonumber(candidate)))
end

-- %d takes a fraction of the time, and is right only where the server's C has longs of 64 bits.
local whole = string.format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'

local function digits(number)
  return string.format(whole, number)
end

-- The TTL of the fence beside a K with this one, as text. Most grants of a call have one TTL, and to write a number is dear.
local outlives = {}

local function outlive(ttl)
  local text = outlives[ttl]
  if not text then
    text = digits(ttl + retention_ms)
    outlives[ttl] = text
  end
  return text
end

-- Writes a grant of `want` numbers (ttl and want are digits).
local function put(token, ttl, want)
  local newest = redis.call('HGET', fence, 'last')
  local first = math.max((tonumber(newest) or 0) + 1, floor)
  local last = first + want - 1
  redis.call('HSET', fence, 'first', digits(first), 'last', digits(last))
  redis.call('PEXPIRE', fence, outlive(ttl))
  redis.call('SET', K, token, 'PX', ttl)
  return first, last
end

-- An owner's own words live beside K and count only for the token that they were written with.
-- words: JSON of [field, value, ...]; empty: there are none.
local function write_info(token, ttl, words)
  if words ~= '' then
    redis.call('DEL', info)
    redis.call('HSET', info, 'token', token, unpack(cjson.decode(words)))
    redis.call('PEXPIRE', info, ttl)
  end
end

local function granted(token, ttl, want, words)
  local first, last = put(token, ttl, want)
  write_info(token, ttl, words)
  return { 1, first, last, token }
end
