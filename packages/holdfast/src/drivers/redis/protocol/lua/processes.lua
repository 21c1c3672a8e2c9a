-- The directory of processes: registers a client, asks all clients, or answers one.
--
--   KEYS[1]  the sorted set of the client IDs, each with the server time in ms at which its registration expires
--   ARGV[1]  register, leave, ask or answer
--   register ARGV[2] client ID, ARGV[3] TTL in ms, ARGV[4] the largest number of clients. Reply 1, or 0 if the set is full
--   leave    ARGV[2] client ID
--   ask      ARGV[2] the start of the channel of a client, ARGV[3] kind of the channels: s sharded, p plain, ARGV[4] start and
--            ARGV[5] end of the question, ARGV[6] the largest number of clients, ARGV[7] the length of all answers.
--            The question gets the length of one answer between start and end.
--            Reply { number of registered clients, { client ID, receivers, remaining ms }... }
--   answer   ARGV[2] channel, ARGV[3] kind of the channel, ARGV[4] the text. Reply the number of receivers
--   Effects  register and leave write the set, which expires. ask and answer publish

local operation, set = ARGV[1], KEYS[1]

local function publish(kind, channel, text)
  return redis.call(kind == 's' and 'SPUBLISH' or 'PUBLISH', channel, text)
end

if operation == 'answer' then
  return publish(ARGV[3], ARGV[2], ARGV[4])
elseif operation == 'leave' then
  return redis.call('ZREM', set, ARGV[2])
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if operation == 'register' then
  redis.call('ZREMRANGEBYSCORE', set, '-inf', string.format('(%.0f', now))
  if redis.call('ZCARD', set) >= tonumber(ARGV[4]) and not redis.call('ZSCORE', set, ARGV[2]) then
    return 0
  end
  redis.call('ZADD', set, string.format('%.0f', now + ARGV[3]), ARGV[2])
  redis.call('PEXPIRE', set, ARGV[3])
  return 1
end

local found = redis.call('ZRANGEBYSCORE', set, string.format('%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[6])
local count = #found / 2
local answer_length = math.min(65536, math.max(1024, math.floor(ARGV[7] / math.max(1, count))))
local question = ARGV[4] .. ' ' .. answer_length .. ' ' .. ARGV[5]
local reply = { redis.call('ZCARD', set) }
for i = 1, #found, 2 do
  local receivers = publish(ARGV[3], ARGV[2] .. found[i], question)
  reply[#reply + 1] = { found[i], receivers, math.floor(found[i + 1] - now) }
end
return reply
