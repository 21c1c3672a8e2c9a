-- Takes several free locks in one step, or none of them.
--
-- KEYS     four for each lock: K, its queue, its fence, its info
-- ARGV[1]  how long a fence outlives its lock, ms
-- ARGV[2]  not used, ARGV[3] is 0: a quorum's node is asked for each key by itself
-- ARGV[4+] for each lock token ttl want words, as of acquire
-- Answers  { server time in microseconds, 0, grant, grant, ... } with what acquire answers for each
--          { server time, which of them is not free, from 1, its holder's token or "" where others wait }

--- @include "_primary.lua"
--- @include "_call.lua"
--- @include "_state.lua"

local count = #KEYS / 4

-- K is free where the lease of every reader, writer or user of a semaphore has expired. A sorted set of another program stays.
local function drop_expired()
  local holders = redis.pcall('TYPE', K).ok == 'zset' and redis.call('ZRANGE', K, 0, -1, 'WITHSCORES') or {}
  for at = 1, #holders, 2 do
    local is_holder = string.find(holders[at], '^%x+:%x+:%a[%d/]*:%d+$')
    if not is_holder or tonumber(holders[at + 1]) * 1000 > now then
      return
    end
  end
  if #holders > 0 then
    redis.call('DEL', K, info)
  end
end

local function enter(i)
  K, queue, fence, info = KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i]
  holder = redis.pcall('GET', K)
  if type(holder) == 'table' then
    drop_expired()
    holder = redis.call('GET', K)
  end
  return ARGV[4 * i], ARGV[4 * i + 1], ARGV[4 * i + 2], ARGV[4 * i + 3]
end

-- The same question once more, by the client library: the same grant, the same numbers.
local function known(ttl)
  local left = redis.call('PTTL', K)
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', K, ttl)
  end
  redis.call('PEXPIRE', fence, math.max(left, ttl) + retention_ms) -- always written: a replica refuses that
  local numbers = redis.call('HMGET', fence, 'first', 'last')
  return { 1, tonumber(numbers[1]) or 0, tonumber(numbers[2]) or 0, holder }
end

local function grant(token, ttl, want, words)
  --- @include "_put.lua"
  write_info(token, ttl, words)
  return { 1, number, last, token }
end

for i = 1, count do
  local token = enter(i)
  if holder ~= token and (holder or redis.call('EXISTS', queue) == 1) then
    return of_primary({ now, i, shown(holder) })
  end
end
local answers = { now, 0 }
for i = 1, count do
  local token, ttl, want, words = enter(i)
  answers[#answers + 1] = holder == token and known(ttl) or grant(token, ttl, want, words)
end
return answers
