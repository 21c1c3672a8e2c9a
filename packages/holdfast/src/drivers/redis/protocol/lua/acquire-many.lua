-- Acquires several free locks of one server in one step, or none of them.
--
--   KEYS     the fencing counter; then three for each lock: lock_key, its queue, its info
--   ARGV[1]  latest: the server time in ms after which the script must have no effect
--   ARGV[2+] for each lock token, ttl, fence_count, metadata, as of acquire
--   Reply    { server time in microseconds, 0, grant, grant, ... }, each grant { 1, first, last, token }
--            { server time, index of a lock that is not free, from 1, its holder's token or "" if only waiters block it }
--            { server time, -1 } if the script came after `latest`
--            a replica replies with the error READONLY
--   Effects  writes all grants, or none; a repeat keeps the grants of its tokens and raises their TTL

--- @include "common/require-primary.lua"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lock_key, queue, info
local holder
--- @include "single/fencing-counter.lua"
--- @include "common/metadata.lua"
--- @include "single/lock-context.lua"

-- Deletes lock_key if every holder of the shared lock has expired. A sorted set of another program stays.
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
  local key_type = redis.call('TYPE', lock_key).ok
  if key_type == 'zset' then
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
      -- The client library has sent the script again: the reply has the same grant and the same numbers.
      raise_ttl(ttl)
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
