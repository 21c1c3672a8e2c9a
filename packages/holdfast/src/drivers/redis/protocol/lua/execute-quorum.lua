-- Runs a batch of operations on locks of one node of a quorum, each isolated from the errors of the others.
--
--   KEYS      four for each operation: lock_key, its queue, its info, its fence
--             The audit follows if an operation writes a record.
--   ARGV[1]   how long a fence outlives its lock, ms
--   ARGV[2]   the maximum length of a queue
--   ARGV[3]   how long votes are delayed after a holder that expired without release, ms
--   ARGV[4]   JSON: one array of strings with each operation's name, proposed fencing number, and arguments
--             the client proposes one fencing number to all nodes
--   Reply     { { server time in microseconds, run id, uptime in s }, reply, reply, ... }
--             each reply as the file of the operation states, or { "error", message }
--             the run id names the server's run, because a client library may resend commands to a restarted server
--             on a replica, a rejected write makes the whole reply the error READONLY
--   Effects   those of the operations
--
-- The server's time is read once, here. A number above 10^14 is written by `digits`, because Lua's tostring rounds at 14 digits.
--
-- The usual acquire and release of a mutex run in the loop below, with few functions. No statement there may raise an error. All other
-- functions are defined only when a call needs them, because their definition costs more than the commands.

--- @include "quorum/call-context.lua"
local operations = cjson.decode(ARGV[4])
local queue_bound = tonumber(ARGV[2])

-- The lock of the current operation, and the token that holds the lock at the start of the operation. `floor` is the lowest number of a
-- new grant: the proposed number, limited to one second around the node's own time.
local lock_key, queue, info, fence
local holder
local floor = now

-- Returns the functions that grant a lock to its next waiter. With `is_all` it returns the dispatcher, which performs any operation and
-- isolates the errors of each operation.
local function prepare(is_all)
  local call = redis.call
  local function write_grant(token, ttl, fence_count)
    --- @include "quorum/write-vote.lua"
    assert(is_written, 'a holder is remembered')
    return number, last, delay_ms
  end
  --- @include "common/waiters.lua"
  --- @include "common/grant-waiter.lua"
  if not is_all then
    return grant_waiter, write_grant
  end

  --- @include "common/metadata.lua"
  --- @include "quorum/remembered-votes.lua"
  --- @include "quorum/lock-context.lua"
  --- @include "common/queue.lua"

  local function prepare_mutex()
    --- @include "quorum/acquire.lua"
    --- @include "quorum/release.lua"
    --- @include "quorum/extend.lua"
    --- @include "quorum/inspect.lua"
    --- @include "quorum/node-operations.lua"
    return {
      acquire = acquire,
      release = release,
      extend = extend,
      verify = verify,
      breakGrant = break_grant,
      inspect = inspect,
      yield = yield,
      raiseFence = raise_fence,
      refill = refill,
    }
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

local server = redis.call('INFO', 'server')
local run = string.find(server, 'run_id:', 1, true) + 7
local uptime = string.find(server, 'uptime_in_seconds:', run, true) + 18
known_run_id = string.sub(server, run, run + 39)
local answers = { { now, known_run_id, tonumber(string.match(server, '^%-?%d+', uptime)) } }

local call = redis.pcall
local at, count = 1, 1
local name = operations[at]
local dispatch, grant_waiter, write_grant
while name do
  local keys = 4 * (count - 1)
  lock_key, queue, info, fence = KEYS[keys + 1], KEYS[keys + 2], KEYS[keys + 3], KEYS[keys + 4]
  local first, next_at = at + 2, nil
  floor = math.max(now - 1000000, math.min(now + 1000000, tonumber(operations[at + 1])))

  -- The usual acquire and release of a mutex. Their replies are shorter: the grant's first number, and 1 for a release. In every other
  -- case, and after an error, `answer` stays nil. Then the dispatcher performs the operation, or reports the error.
  local token, answer, removed_waiter = operations[first], nil, nil
  holder = nil
  -- Byte 67 of a token begins the ticket of a mutex (a digit), or the mode of a shared lock (a letter).
  local is_acquire, is_release = name == 'acquire', name == 'release'
  if (is_acquire or is_release) and (string.byte(token, 67) or 58) <= 57 then
    holder = call('GET', lock_key)
    if is_acquire then
      if not holder and operations[first + 5] == '' and now <= operations[first + 6] * 1000 and call('EXISTS', queue) == 0 then
        local ttl, fence_count = operations[first + 2], operations[first + 3]
        --- @include "quorum/write-vote.lua"
        answer, next_at = is_written and (delay_ms and { 1, number, last, token, delay_ms } or number), first + 7
      end
    elseif holder == token then
      --- @include "quorum/hand-over.lua"
    end
  end

  if not answer then
    dispatch = dispatch or prepare(true)
    local refusal, _
    answer, _, next_at, refusal = dispatch(name, first, holder, removed_waiter)
    -- A replica rejected a write. The whole call fails, because the data of a replica may be outdated.
    if refusal then
      return redis.error_reply(refusal)
    end
  end
  count = count + 1
  answers[count] = answer
  at = next_at
  name = operations[at]
end
return answers
