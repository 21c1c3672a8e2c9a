-- One step through the keys of this server that may be locks.
--
-- ARGV[1]  cursor, "0" at the start
-- ARGV[2]  pattern of K
-- ARGV[3]  how many keys to look at
-- Answers  { next cursor, "0" at the end, [key, ...] }

return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', 'string')
