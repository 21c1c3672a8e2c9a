-- One operation on a lock in the layout of python-redis-lock, 3.3 to 4.0.
--
--   KEYS, ARGV  see common/arguments.lua and common/operations.lua
--   KEYS[7]     the signal of the lock, a list
--
-- A waiter of that library blocks on the signal.

--- @include "common/arguments.lua"
--- @include "common/time-fencing.lua"
--- @include "common/queue.lua"
--- @include "common/records.lua"

local signal = KEYS[7]
local signal_ttl = 1000

local function value_of(holder)
  return holder
end

local function is_value_of(value, holder)
  return value == holder
end

local function token_in(value)
  return from_uuid(value) == value and value or ''
end

-- Redis serves a blocked waiter after the script, so the waiter finds the lock free.
local function before_end()
  redis.call('DEL', signal)
  redis.call('LPUSH', signal, 1)
  redis.call('PEXPIRE', signal, signal_ttl)
end

local function wake()
end

--- @include "strings/locks.lua"
--- @include "common/operations.lua"
