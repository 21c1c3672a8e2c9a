-- Runs a batch of operations on locks of one node, each isolated from the errors of the others.
--
-- KEYS      four for each operation: K, its queue, its fence, its info
-- ARGV[1]   how long a fence outlives its lock, ms
-- ARGV[2]   bound on the length of a queue
-- ARGV[3]   1: this is a node of a quorum; 0: it decides alone
-- ARGV[4]   JSON: one array of strings with all operations, each its name and its arguments; the files below say which.
--           Of a quorum's node the name is followed by the candidate: the fencing number that the client would like all nodes to give
-- Answers   { server time in microseconds, answer, answer, ... }
--           of a quorum's node { { server time, run id, uptime in s }, answer, answer, ... }: a client library may send
--           unanswered commands again to a server that has forgotten, so each answer says whose it is
--           an answer is what the operation's file says, or { "error", message }
--
-- Time is read once and only here, from the server. A number that may pass 10^14 is written by %.0f:
-- Lua's tostring rounds at 14 digits.
--
-- Most calls take a free lock for which nobody waits, or give it back: they are done by `usual`. All the rest is defined
-- only when it is needed, as defining it costs more than the usual call. So do arguments, closures and protected calls by the
-- operation: hence one text for all operations, and one protected call for as many as do not fail.

--- @include "_primary.lua"
--- @include "_state.lua"
local operations = cjson.decode(ARGV[4])
-- Where the operation in turn begins, its arguments begin, and the next one begins.
local at, first, behind = 1, nil, nil

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
    releaseGrant = release,
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
  if read_for ~= at then
    holder = redis.call('GET', K)
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
  if name == 'verify' or name == 'inspect' or name == 'countDown' or name == 'awaitLatch' then
    return false
  elseif type(answer) == 'number' then
    return answer == 1 or name == 'acquire'
  elseif name == 'acquire' and answer[1] == 0 then
    return answer[3] >= 0
  end
  return answer[1] == 1
end

local answers = { now }
local is_proved = is_quorum
if is_quorum then
  local server = redis.call('INFO', 'server')
  local run = string.find(server, 'run_id:', 1, true) + 7
  local uptime = string.find(server, 'uptime_in_seconds:', run, true) + 18
  known_run_id = string.sub(server, run, run + 39)
  answers[1] = { now, known_run_id, tonumber(string.match(server, '^%-?%d+', uptime)) }
end

local head = is_quorum and 2 or 1
local count = #answers

local function answer_with(name, answer)
  is_proved = is_proved or is_of_primary(name, answer)
  count = count + 1
  answers[count] = answer
  at = behind
end

local function follow_candidate()
  if is_quorum then
    floor = near(operations[first - 1])
  end
end

local function perform_all()
  local name = operations[at]
  while name do
    local keys = 4 * (count - 1)
    K, queue, fence, info = KEYS[keys + 1], KEYS[keys + 2], KEYS[keys + 3], KEYS[keys + 4]
    first = at + head
    behind = first + count_of(name)
    local answer = usual(name)
    if not answer then
      follow_candidate()
      answer = perform(name, unpack(operations, first, behind - 1))
    end
    answer_with(name, answer)
    name = operations[at]
  end
end

while operations[at] do
  local ok, failure = pcall(perform_all)
  if not ok then
    local name, answer = operations[at], nil
    follow_candidate()
    ok, answer = perform_anew(failure, name, unpack(operations, first, behind - 1))
    if not ok then
      answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
      local refusal = string.match(answer[2], 'READONLY .*')
      if refusal then
        return redis.error_reply(refusal) -- a replica: nothing was written, and what was read may be old
      end
    end
    answer_with(name, answer)
  end
end
return is_proved and answers or of_primary(answers)
