-- One operation on a lock in the layout of Spring Integration's RedisLockRegistry, 5.5.13 to 7.1.
--
--   KEYS, ARGV  see common/arguments.lua and common/operations.lua
--   ARGV[3]     the channel of the lock, on which Spring 7 publishes the lock key
--   ARGV[4]     the channel of the registry, on which earlier versions publish the lock key
--
-- The value of the lock is the UUID of a registry, so each acquisition of this library is a registry of its own.

--- @include "common/arguments.lua"
--- @include "common/time-fencing.lua"
--- @include "common/queue.lua"
--- @include "common/records.lua"

local function value_of(holder)
  return (to_uuid(holder))
end

local function is_value_of(value, holder)
  return value == value_of(holder)
end

local function token_in(value)
  return #value == 36 and from_uuid(value) or ''
end

local function before_end()
end

-- Spring's waiters sleep until this message. They try again at the end of their wait, or after 60 s.
local function wake()
  publish(channel, lock_key)
  publish(other_channel, lock_key)
end

--- @include "strings/locks.lua"
--- @include "common/operations.lua"
