-- Takes several free locks of one server in one step, or none of them.
--
-- KEYS     the counter of fencing numbers; then three for each lock: lock_key, its queue, its info
-- ARGV[1]  server time in ms behind which this must have no effect
-- ARGV[2+] for each lock token ttl want words, as of acquire
-- Answers  { server time in microseconds, 0, grant, grant, ... }, each { 1, first, last, token }
--          { server time, which of them is not free, from 1, its holder's token or "" where others wait }
--          { server time, -1 } it came too late

--- @include "common/require-primary.lua"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lock_key, queue, info
local holder
--- @include "single/fencing-counter.lua"
--- @include "common/metadata.lua"
--- @include "single/lock-context.lua"

-- lock_key is free where the lease of every reader, writer or user of a semaphore has expired. A sorted set of another program stays.
local function drop_expired()
  local holders = redis.pcall('TYPE', lock_key).ok == 'zset' and redis.call('ZRANGE', lock_key, 0, -1, 'WITHSCORES') or {}
  for at = 1, #holders, 2 do
    local is_holder = string.find(holders[at], '^%x+:%x+:%a[%d/]*:%d+$')
    if not is_holder or tonumber(holders[at + 1]) * 1000 > now then
      return
    end
  end
  if #holders > 0 then
    redis.call('DEL', lock_key, info)
  end
end

local function load_lock(i)
  lock_key, queue, info = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]
  local type_of_K = redis.call('TYPE', lock_key).ok
  if type_of_K == 'zset' then
    drop_expired()
  end
  holder = read_holder()
  return ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i], ARGV[4 * i + 1]
end

local function grant(token, ttl, fence_count, metadata)
  local first, last = next_fence(fence_count)
  local value = table.concat({ token, digits(first), last - first + 1 }, ' ')
  write_info(token, ttl, metadata)
  redis.call('SET', lock_key, metadata ~= '' and value .. ' i' or value, 'PX', ttl)
  return { 1, first, last, token }
end

if now > ARGV[1] * 1000 then
  return require_primary({ now, -1 })
end
local count = (#KEYS - 1) / 3
for i = 1, count do
  local token = load_lock(i)
  if holder ~= token and (holder or redis.call('EXISTS', queue) == 1) then
    return require_primary({ now, i, holder_text(holder) })
  end
end
local answers = { now, 0 }
local function grant_all()
  for i = 1, count do
    local token, ttl, fence_count, metadata = load_lock(i)
    if holder == token then
      raise_ttl(ttl) -- the same question once more, by the client library: the same grant, the same numbers
      answers[#answers + 1] = { 1, own_first, own_last, token }
    else
      answers[#answers + 1] = grant(token, ttl, fence_count, metadata)
    end
  end
end
local ok, failure = pcall(grant_all)
keep_counter()
if not ok then
  return redis.error_reply(type(failure) == 'table' and failure.err or failure)
end
return answers
