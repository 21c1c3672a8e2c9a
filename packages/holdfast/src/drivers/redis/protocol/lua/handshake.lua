-- Stores the description of a client, and publishes a text that verifies the client's subscription.
--
--   KEYS[1]  the hash of the client; without fields the script writes nothing, and the key only names the slot
--   ARGV[1]  the channel of the client
--   ARGV[2]  the kind of the channel: s... sharded, p plain, n none (publish nothing)
--   ARGV[3]  the text to publish
--   ARGV[4]  the TTL of the hash, ms
--   ARGV[5+] field, value, ... of the hash
--   Reply    { server time in microseconds, receivers, run id, server version, role, uptime in s, INFO replication }
--            The uptime is negative if the server's clock was set back after the server started.
--   Effects  a primary replaces the hash and publishes the text; a replica does neither

local replication = redis.call('INFO', 'replication')
local role = string.match(replication, 'role:(%a+)')
-- A replica may be read-only. The script must not fail there, because its reply reports the role.
if role == 'master' and ARGV[5] then
  -- A server with full memory refuses HSET as the first write of a script.
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], unpack(ARGV, 5))
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local receivers = 0
-- A replica publishes nothing, because grants come from the primary and the text would verify the wrong server.
if ARGV[2] ~= 'n' and role == 'master' then
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
  replication,
}
