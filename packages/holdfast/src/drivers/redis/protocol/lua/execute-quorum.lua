-- Runs a batch of operations on locks of one node of a quorum, each isolated from the errors of the others.
--
-- KEYS      four for each operation: lock_key, its queue, its info, its fence
-- ARGV[1]   how long a fence outlives its lock, ms
-- ARGV[2]   bound on the length of a queue
-- ARGV[3]   how long a vote waits behind a holder that was not released, ms
-- ARGV[4]   JSON: one array of strings with all operations, each its name, the candidate, and its arguments; the files below say which.
--           The candidate is the fencing number that the client would like all nodes to give
-- Answers   { { server time in microseconds, run id, uptime in s }, answer, answer, ... }: a client library may send
--           unanswered commands again to a server that has forgotten, so each answer says whose it is
--           an answer is what the operation's file says, or { "error", message }
--
-- Time is read once and only here, from the server. A number that may pass 10^14 is written by %.0f:
-- Lua's tostring rounds at 14 digits.
--
-- Most calls take a lock, and give it back. That is done in the loop below, with few functions
-- and captured locals, as to define all of them costs more than the commands: nothing there may raise an error. All the rest is
-- defined when it is needed.

--- @include "quorum/call-context.lua"
local operations = cjson.decode(ARGV[4])
local queue_bound = tonumber(ARGV[2])

-- The lock in turn: its keys, who holds it as the operation begins, and the least number of a new grant: the candidate, which each
-- node keeps within a second of its own time.
local lock_key, queue, info, fence
local holder
local floor = now

-- Answers what hands a lock over; or, for all that is not usual, what performs any operation, isolated from the errors of the others.
local function prepare(is_all)
  local call = redis.call
  local function write_grant(token, ttl, fence_count)
    --- @include "quorum/write-vote.lua"
    assert(is_written, 'a holder is remembered')
    return number, last, left
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

  -- The usual, of a mutex. The same as in their own files; a free lock's taking and giving back are answered by less: the grant's
  -- first number, the others are known to who asked; 1, nothing is left.
  -- Where it is another case, or something fails, there is no answer: the rest takes it from there, and says what failed.
  local token, answer, popped = operations[first], nil, nil
  holder = nil
  local is_acquire, is_release = name == 'acquire', name == 'release'
  if (is_acquire or is_release) and (string.byte(token, 67) or 58) <= 57 then
    holder = call('GET', lock_key)
    if is_acquire then
      if not holder and operations[first + 5] == '' and now <= operations[first + 6] * 1000 and call('EXISTS', queue) == 0 then
        local ttl, fence_count = operations[first + 2], operations[first + 3]
        --- @include "quorum/write-vote.lua"
        answer, next_at = is_written and (left and { 1, number, last, token, left } or number), first + 7
      end
    elseif holder == token then
      --- @include "quorum/hand-over.lua"
    end
  end

  if not answer then
    dispatch = dispatch or prepare(true)
    local refusal, _
    answer, _, next_at, refusal = dispatch(name, first, holder, popped)
    if refusal then
      return redis.error_reply(refusal) -- a replica: nothing was written, and what was read may be old
    end
  end
  count = count + 1
  answers[count] = answer
  at = next_at
  name = operations[at]
end
return answers
