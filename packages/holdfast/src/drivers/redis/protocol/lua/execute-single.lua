-- Runs operations on locks of one server, or of one slot of a cluster, each isolated from the errors of the others.
--
--   KEYS      the fencing counter; then three for each operation: lock_key, its queue, its info
--             The audit follows if an operation writes a record.
--   ARGV[1]   the maximum length of a queue
--   ARGV[2]   for several operations: JSON, one array of strings with each operation's name and arguments
--             for one operation: its name, with its arguments in the rest of ARGV, because JSON would cost time
--             for an acquire and then the release of an older token of the same lock: both, in this flat form
--   Reply     { server time in microseconds, reply, reply, ... }
--             each reply as the file of the operation states, or { "error", message }
--             a replica replies with the error READONLY
--   Effects   those of the operations
--
-- The most frequent operations have a lone form with fewer arguments: then ARGV[1] is the name. See single/lone-*.lua.
--
-- The server's time is read once. The lone forms, the acquisition of a free lock and the release without a waiter use few functions. The
-- other functions are defined only when a call needs them, because their definition costs more than the commands.

local function read_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local now, operations, queue_bound
-- The lock of the current operation, and the token that holds the lock at the start of the operation.
local lock_key, queue, info = KEYS[2], KEYS[3], KEYS[4]
local holder

-- The index of the first operation's name in `operations`.
local at = 1
local is_lone = true
if ARGV[1] == 'acquire' then
  --- @include "single/lone-acquire.lua"
elseif ARGV[1] == 'release' then
  --- @include "single/lone-release.lua"
else
  is_lone = false
  now = read_time()
  queue_bound = ARGV[1]
  if #KEYS < 7 then
    operations, at = ARGV, 2
  else
    operations = cjson.decode(ARGV[2])
  end
  if #KEYS == 4 and ARGV[2] == 'acquire' and ARGV[10] == 'release' then
    --- @include "single/fast-requeue.lua"
  end
end
queue_bound = tonumber(queue_bound)
local is_quorum = false
local known_run_id

-- The fencing number for a shared holder whose number was evicted.
local floor = 0

--- @include "single/fencing-counter.lua"

local function write_grant(token, ttl, fence_count, mark)
  local first, last = next_fence(fence_count)
  local value = table.concat({ token, digits(first), last - first + 1 }, ' ')
  redis.call('SET', lock_key, mark and value .. ' i' or value, 'PX', ttl)
  return first, last
end

local function prepare()
  --- @include "common/waiters.lua"
  --- @include "common/grant-waiter.lua"
  --- @include "common/metadata.lua"
  --- @include "single/lock-context.lua"
  --- @include "common/queue.lua"

  local function prepare_mutex()
    --- @include "single/mutex.lua"
    return mutex
  end

  local function prepare_shared()
    --- @include "common/shared-holders.lua"
    --- @include "common/shared-lock-grants.lua"
    --- @include "common/shared-lock.lua"
    return shared, is_free
  end

  local function prepare_latch()
    --- @include "common/latch.lua"
    return latch
  end

  --- @include "common/recorded-break.lua"
  --- @include "common/dispatch.lua"
  return perform_isolated
end

local answers = { now }
-- Whether a reply proves that this server is a primary.
local is_proved = false
local call = redis.pcall
local count = 1
local name = operations[at]
local perform_isolated
while name do
  if count > 1 and #KEYS > 6 then
    lock_key, queue, info = KEYS[3 * count - 1], KEYS[3 * count], KEYS[3 * count + 1]
  end
  local first = at + 1
  local token, next_at, answer, removed_waiter = operations[first], nil, nil, nil

  -- In every other case, and after an error, `answer` stays nil. Then the dispatcher performs the operation, or reports the error.
  -- Byte 67 of a token begins the ticket of a mutex (a digit), or the mode of a shared lock (a letter).
  local is_fast = not is_lone and (name == 'acquire' or name == 'release') and (string.byte(token, 67) or 58) <= 57
  if is_fast and name == 'acquire' then
    --- @include "single/fast-acquire.lua"
  elseif is_fast then
    --- @include "single/fast-release.lua"
  end

  if answer then
    is_proved = true
  else
    perform_isolated = perform_isolated or prepare()
    local proves, refusal
    answer, proves, next_at, refusal = perform_isolated(name, first, nil, removed_waiter)
    -- A replica rejected a write. The whole call fails, because the data of a replica may be outdated.
    if refusal then
      return redis.error_reply(refusal)
    end
    is_proved = is_proved or proves
  end
  count = count + 1
  answers[count] = answer
  at = next_at
  name = operations[at]
end
keep_counter()
if is_proved then
  return answers
end
--- @include "common/require-primary.lua"
return require_primary(answers)
