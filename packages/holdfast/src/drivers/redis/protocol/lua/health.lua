-- Reads from INFO the facts that decide whether a node of a quorum may vote.
--
--   Reply    { run id, uptime in s, role, replication id, 1 if a restart loads the append-only file as it is now, maxmemory policy,
--            maxmemory, the number of flushes in this run, 1 if this run has rewritten its append-only file }
--   Effects  none

local server = redis.call('INFO', 'server')
local replication = redis.call('INFO', 'replication')
local persistence = redis.call('INFO', 'persistence')
local memory = redis.call('INFO', 'memory')
local flushes = 0
for calls in string.gmatch(redis.call('INFO', 'commandstats'), 'cmdstat_flush%a+:calls=(%d+)') do
  flushes = flushes + calls
end
-- Until its first rewrite has ended, a file that was switched on during the run is not the one that a restart loads.
local isLoadable = string.find(persistence, 'aof_enabled:1', 1, true)
  and string.find(persistence, 'aof_rewrite_in_progress:0', 1, true)
  and string.find(persistence, 'aof_rewrite_scheduled:0', 1, true)
return {
  string.match(server, 'run_id:(%x+)'),
  tonumber(string.match(server, 'uptime_in_seconds:(%-?%d+)')),
  string.match(replication, 'role:(%a+)'),
  string.match(replication, 'master_replid:(%x+)'),
  isLoadable and 1 or 0,
  string.match(memory, 'maxmemory_policy:([%a-]+)'),
  tonumber(string.match(memory, 'maxmemory:(%d+)')),
  flushes,
  string.find(persistence, 'aof_last_rewrite_time_sec:-1', 1, true) and 0 or 1,
}
