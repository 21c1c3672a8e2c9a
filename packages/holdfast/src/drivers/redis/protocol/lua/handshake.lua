-- Says who we are and proves that the subscription works: what is published here must be heard by us.
--
-- KEYS[1]  the hash of this client; without fields it is not written, and names only the slot
-- ARGV[1]  our channel
-- ARGV[2]  its kind: s... sharded, p plain, n none (only say who we are)
-- ARGV[3]  the text to publish
-- ARGV[4]  how long the hash is kept, ms
-- ARGV[5+] field, value, ... of the hash
-- Answers  { server time in microseconds, receivers, run id, server version, role, uptime in s }
--          The uptime is negative where the server's clock was put back since it was started.

local role = string.match(redis.call('INFO', 'replication'), 'role:(%a+)')
if role == 'master' and ARGV[5] then -- a replica may be read-only, and has to be able to say that it is one
  redis.call('HSET', KEYS[1], unpack(ARGV, 5))
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local receivers = 0
if ARGV[2] ~= 'n' and role == 'master' then -- what a replica publishes proves nothing: grants come from its primary
  receivers = redis.call(ARGV[2] == 'p' and 'PUBLISH' or 'SPUBLISH', ARGV[1], ARGV[3])
end
local server = redis.call('INFO', 'server')
local time = redis.call('TIME')
return {
  time[1] * 1000000 + time[2],
  receivers,
  string.match(server, 'run_id:(%x+)'),
  string.match(server, 'redis_version:([%d.]+)'),
  role,
  tonumber(string.match(server, 'uptime_in_seconds:(%-?%d+)')),
}
