-- Runs a batch of operations on locks of one node, each isolated from the errors of the others.
--
-- KEYS      four for each operation: K, its queue, its fence, its info
-- ARGV[1]   how long a fence outlives its lock, ms
-- ARGV[2]   bound on the length of a queue
-- ARGV[3]   1: this is a node of a quorum; 0: it decides alone
-- ARGV[4+]  for each operation its name and its arguments; the files below say which. Of a quorum's node the name follows
--           the candidate: the fencing number that the client would like all nodes to give
-- Answers   { server time in microseconds, answer, answer, ... }
--           of a quorum's node { { server time, run id, uptime in s }, answer, answer, ... }: a client library may send
--           unanswered commands again to a server that has forgotten, so each answer says whose it is
--           an answer is what the operation's file says, or { "error", message }
--
-- Time is read once and only here, from the server. A number that may pass 10^14 is written by %.0f:
-- Lua's tostring rounds at 14 digits.
--
-- Most calls take a free lock for which nobody waits, or give it back: they are done by `usual`. All the rest is defined
-- only when it is needed, as defining it costs more than the usual call.

--- @include "_primary.lua"
--- @include "_state.lua"
--- @include "_usual.lua"

local function define_rest()
  --- @include "_queue.lua"
  --- @include "_acquire.lua"
  --- @include "_release.lua"
  --- @include "_extend.lua"
  --- @include "_inspect.lua"
  --- @include "_quorum.lua"
  return {
    acquire = acquire,
    passOn = pass_on,
    release = release,
    recant = recant,
    extend = extend,
    verify = verify,
    breakGrant = break_grant,
    inspect = inspect,
    yield = yield,
    agree = agree,
  }
end

local function define_share()
  --- @include "_queue.lua"
  --- @include "_holders.lua"
  --- @include "_share.lua"
  return share, is_over
end

local function define_latch()
  --- @include "_queue.lua"
  --- @include "_latch.lua"
  return latch
end

local function is_of_latches(name)
  return name == 'countDown' or name == 'awaitLatch' or name == 'leaveLatch'
end

local latch
local function perform_on_latch(name, ...)
  latch = latch or define_latch()
  if not latch[name] then
    error('KINDMISMATCH latch', 0)
  end
  return latch[name](...)
end

-- A token says of itself whether it shares the lock. Where there is none, what is there now tells.
local function shares(name, token)
  local mark = token and string.byte(token, 67)
  if mark then
    return mark > 57
  end
  local found = redis.call('TYPE', K).ok
  if found ~= 'none' then
    return found == 'zset'
  end
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then
    return string.find(first, '^%x+:%x+:%a') ~= nil
  end
  return name == 'setLimit' or redis.call('HEXISTS', fence, 'kind') == 1
end

local rest, share, is_over
local function perform(name, ...)
  if shares(name, ...) then
    if not share then
      share, is_over = define_share()
    end
    return share.perform(name, ...)
  end
  holder = redis.call('GET', K)
  local answer = usual(name, ...)
  if answer then
    return answer
  end
  if not holder and is_of_latches(name) then
    return perform_on_latch(name, ...)
  end
  rest = rest or define_rest()
  if not rest[name] then
    error('KINDMISMATCH mutex', 0)
  end
  return rest[name](...)
end

-- What failed and may have failed as K is of another kind, and was not touched: a latch is asked as what it is; and where all who
-- shared K have expired, it is free.
local function perform_anew(failure, ...)
  local found = redis.call('TYPE', K).ok
  if found == 'hash' and redis.call('HEXISTS', K, 'latch') == 1 then
    return pcall(perform_on_latch, ...)
  elseif found == 'zset' and not shares(...) then
    if not share then
      share, is_over = define_share()
    end
    if is_over() then
      return pcall(perform, ...)
    end
  end
  return false, failure
end

-- How many arguments an operation has.
local function count_of(name)
  if name == 'acquire' or name == 'passOn' or name == 'yield' or name == 'awaitLatch' then
    return 6
  elseif name == 'release' or name == 'recant' or name == 'downgrade' or name == 'leaveLatch' then
    return 2
  elseif name == 'countDown' then
    return 5
  elseif name == 'inspect' then
    return 0
  end
  return (name == 'verify' or name == 'setLimit') and 1 or 3
end

-- Whether an answer could only be given by a primary: what was granted, queued, given back or renewed was written. Of a latch that
-- is asked again nothing may be.
local function is_of_primary(name, answer)
  if name == 'acquire' and answer[1] == 0 then
    return answer[3] >= 0
  elseif name == 'verify' or name == 'inspect' or name == 'countDown' or name == 'awaitLatch' then
    return false
  end
  return (type(answer) == 'table' and answer[1] or answer) == 1
end

local answers, at = { now }, 4
local is_proved = is_quorum
if is_quorum then
  local server = redis.call('INFO', 'server')
  local run = string.find(server, 'run_id:', 1, true) + 7
  local uptime = string.find(server, 'uptime_in_seconds:', run, true) + 18
  known_run_id = string.sub(server, run, run + 39)
  answers[1] = { now, known_run_id, tonumber(string.match(server, '^%d+', uptime)) }
end
for i = 1, #KEYS, 4 do
  K, queue, fence, info = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  if is_quorum then
    floor = math.max(now - 1000000, math.min(now + 1000000, tonumber(ARGV[at])))
    at = at + 1
  end
  local last = at + count_of(ARGV[at])
  local ok, answer = pcall(perform, unpack(ARGV, at, last))
  if not ok then
    ok, answer = perform_anew(answer, unpack(ARGV, at, last))
  end
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
    local refusal = string.match(answer[2], 'READONLY .*')
    if refusal then
      return redis.error_reply(refusal) -- a replica: nothing was written, and what was read may be old
    end
  end
  is_proved = is_proved or is_of_primary(ARGV[at], answer)
  answers[#answers + 1] = answer
  at = last + 1
end
return is_proved and answers or of_primary(answers)
