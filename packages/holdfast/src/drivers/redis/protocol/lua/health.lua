-- Reads from INFO the facts that decide whether a node of a quorum may vote.
--
--   Reply    { run id, uptime in s, role, replication id, 1 if the append-only file is on, maxmemory policy, maxmemory,
--            the number of flushes in this run }
--   Effects  none

local server = redis.call('INFO', 'server')
local replication = redis.call('INFO', 'replication')
local memory = redis.call('INFO', 'memory')
local flushes = 0
for calls in string.gmatch(redis.call('INFO', 'commandstats'), 'cmdstat_flush%a+:calls=(%d+)') do
  flushes = flushes + calls
end
return {
  string.match(server, 'run_id:(%x+)'),
  tonumber(string.match(server, 'uptime_in_seconds:(%-?%d+)')),
  string.match(replication, 'role:(%a+)'),
  string.match(replication, 'master_replid:(%x+)'),
  tonumber(string.match(redis.call('INFO', 'persistence'), 'aof_enabled:(%d)')),
  string.match(memory, 'maxmemory_policy:([%a-]+)'),
  tonumber(string.match(memory, 'maxmemory:(%d+)')),
  flushes,
}
