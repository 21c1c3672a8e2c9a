-- One operation on a lock in the layout of ShedLock's providers for Redis, 5 to 7.
--
--   KEYS, ARGV  see common/arguments.lua and common/operations.lua
--   ARGV[5]     the start of the value: `ADDED:<time>@<host>:`; the end is the token as a UUID
--
-- ShedLock does not wait. Its scheduled tasks skip a run.

--- @include "common/arguments.lua"
--- @include "common/time-fencing.lua"
--- @include "common/queue.lua"
--- @include "common/records.lua"

local function value_of(holder)
  return detail .. to_uuid(holder)
end

-- Another process of this library may have written the start of the value.
local function is_value_of(value, holder)
  return string.find(value, '^ADDED:') ~= nil and string.sub(value, -37) == ':' .. to_uuid(holder)
end

local function token_in(value)
  return string.find(value, '^ADDED:') and from_uuid(string.sub(value, -36)) or ''
end

local function before_end()
end

local function wake()
end

--- @include "strings/locks.lua"
--- @include "common/operations.lua"
