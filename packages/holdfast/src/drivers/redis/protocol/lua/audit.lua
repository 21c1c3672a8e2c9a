-- Reads the audits of all slots of this server of a cluster. The script accesses keys of several slots, none of which is declared.
--
--   ARGV[1]  the prefix of the locks
--   ARGV[2]  records with a smaller id are removed; "0": no record is removed
--   ARGV[3]  and following: the hash tags of the slots
--   Reply    { { tag, record, ... }, ... } for the slots with records; a replica replies with the error READONLY
--   Effects  removes the old records

--- @include "common/require-primary.lua"

local found = {}
for at = 3, #ARGV do
  local audit = 'holdfast:audit:{' .. ARGV[at] .. '}:' .. ARGV[1]
  -- The command fails while the slot migrates to another server, if the slot has no audit here.
  local records = redis.pcall('ZRANGE', audit, 0, -1)
  if #records > 0 then
    if ARGV[2] ~= '0' then
      redis.call('ZREMRANGEBYSCORE', audit, '-inf', '(' .. ARGV[2])
    end
    table.insert(records, 1, ARGV[at])
    found[#found + 1] = records
  end
end
return require_primary(found)
