-- One operation on a lock whose key has the holder's token as its whole value, and whose waiters poll. For servers without channels.
--
--   KEYS, ARGV  see common/arguments.lua and common/operations.lua
--
-- `redis()` stores its own locks under the same keys, with longer tokens. So both exclude each other.

--- @include "common/arguments.lua"
--- @include "common/time-fencing.lua"
--- @include "common/queue.lua"
--- @include "common/records.lua"

local function value_of(holder)
  return holder
end

local function is_value_of(value, holder)
  return value == holder
end

local function token_in(value)
  return #value == 32 and string.find(value, '^%x+$') and value or ''
end

local function before_end()
end

local function wake()
end

--- @include "strings/locks.lua"

local all_holders = holders

-- The value of another client may be a secret token.
holders = function(max)
  local found = all_holders(max)
  if found[1] and found[1][4] == '' then
    found[1][1] = 'client'
  end
  return found
end

-- REST runs scripts on the primary only, and some of its servers do not report their role.
serves_reads = true

--- @include "common/operations.lua"
