-- One step through the keys of this server that may be locks.
--
--   ARGV[1]  cursor, "0" at the start
--   ARGV[2]  pattern of lock_key
--   ARGV[3]  the number of keys to examine
--   Reply    { next cursor, "0" at the end, [key, ...] }; a replica replies with the error READONLY
--   Effects  none

--- @include "common/require-primary.lua"

local next_cursor, found = unpack(redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3]))
local locks = {}
for _, key in ipairs(found) do
  -- In a cluster the command fails while the key's slot migrates to this node.
  local kind = redis.pcall('TYPE', key).ok
  local holder = kind == 'zset' and redis.call('ZRANGE', key, 0, 0)[1]
  local is_shared = holder and string.find(holder, '^%x+:%x+:%a[%d/]*:%d+$')
  if kind == 'string' or is_shared or kind == 'hash' and redis.call('HEXISTS', key, 'latch') == 1 then
    locks[#locks + 1] = key
  end
end
return require_primary({ next_cursor, locks })
