-- The lock in turn: its keys, and who holds it as the operation begins.

local K, queue, fence, info
local holder

-- The least number of a new grant. Alone it is the server's time, so numbers rise even where the counter was lost.
-- A quorum's client sends a candidate to all nodes; each keeps it within a second of its own time.
local floor = now
local call = redis.call

local function digits(number)
  return string.format(whole, number)
end

-- The holder as an answer has it. K may have a value of another program, of any size: a token is shorter than 600 bytes.
local function shown(value)
  return string.sub(value or '', 1, 600)
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
