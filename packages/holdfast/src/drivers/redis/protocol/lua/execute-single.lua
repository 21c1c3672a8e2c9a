-- Runs operations on locks of one server, or of one slot of a cluster, each isolated from the errors of the others.
--
-- KEYS      the counter of fencing numbers; then three for each operation: lock_key, its queue, its info
-- ARGV[1]   bound on the length of a queue
-- ARGV[2]   of several operations: JSON, one array of strings, each operation's name and its arguments. Of one: its name, and its
--           arguments in the rest of ARGV, because a lone operation need not pay for JSON
-- Answers   { server time in microseconds, answer, answer, ... }
--           an answer is what the operation's file says, or { "error", message }
--
-- Time is read once and only here, from the server. The acquisition of a free lock and the release without a waiter are carried out in
-- the loop below. All other cases are defined when a call needs them, as to define their functions costs more than the commands.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local queue_bound = tonumber(ARGV[1])
local is_quorum = false
local known_run_id

local is_single = #KEYS == 4
local operations = is_single and ARGV or cjson.decode(ARGV[2])

-- The lock in turn, and the token that holds it as the operation begins.
local lock_key, queue, info
local holder
local floor = 0 -- the number of a shared holder whose number was evicted

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

  --- @include "common/dispatch.lua"
  return perform_isolated
end

local answers = { now }
local is_proved = false -- a primary answered
local call = redis.pcall
local at, count = is_single and 2 or 1, 1
local name = operations[at]
local perform_isolated
while name do
  lock_key, queue, info = KEYS[3 * count - 1], KEYS[3 * count], KEYS[3 * count + 1]
  local first = at + 1
  local token, next_at, answer, popped = operations[first], nil, nil, nil

  -- Where it is another case, or something fails, there is no answer: the rest takes it from there, and names what failed.
  if name == 'acquire' and (string.byte(token, 67) or 58) <= 57 then
    --- @include "single/fast-acquire.lua"
  elseif name == 'release' and (string.byte(token, 67) or 58) <= 57 then
    --- @include "single/fast-release.lua"
  end

  if answer then
    is_proved = true
  else
    perform_isolated = perform_isolated or prepare()
    local proves, refusal
    answer, proves, next_at, refusal = perform_isolated(name, first, nil, popped)
    if refusal then
      return redis.error_reply(refusal) -- a replica: nothing was written, and what was read may be old
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
