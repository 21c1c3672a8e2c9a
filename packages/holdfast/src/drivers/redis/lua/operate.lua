-- Runs a batch of operations on locks of one node, each isolated from the errors of the others.
--
-- KEYS      four for each operation: K, its queue, its fence, its info
-- ARGV[1]   how long a fence outlives its lock, ms
-- ARGV[2]   bound on the length of a queue
-- ARGV[3+]  for each operation its name and its arguments; the files below say which
-- Answers   { server time in microseconds, answer, answer, ... }
--           an answer is what the operation's file says, or { "error", message }
--
-- Time is read once and only here, from the server. A number that may pass 10^14 is written by %.0f:
-- Lua's tostring rounds at 14 digits.
--
-- Most calls take a free lock for which nobody waits, or give it back: they are done by `usual`. All the rest is defined
-- only when it is needed, as defining it costs more than the usual call.

--- @include "_state.lua"
--- @include "_usual.lua"

local function define_rest()
  --- @include "_queue.lua"
  --- @include "_acquire.lua"
  --- @include "_release.lua"
  --- @include "_extend.lua"
  --- @include "_inspect.lua"
  return {
    acquire = acquire,
    passOn = pass_on,
    release = release,
    extend = extend,
    verify = verify,
    breakGrant = break_grant,
    inspect = inspect,
  }
end

local rest
local function perform(name, ...)
  holder = redis.call('GET', K)
  local answer = usual(name, ...)
  if answer then
    return answer
  end
  rest = rest or define_rest()
  return rest[name](...)
end

-- How many arguments an operation has.
local function count_of(name)
  if name == 'acquire' or name == 'passOn' then
    return 6
  elseif name == 'release' then
    return 2
  elseif name == 'inspect' then
    return 0
  end
  return name == 'verify' and 1 or 3
end

local answers, at = { now }, 3
for i = 1, #KEYS, 4 do
  K, queue, fence, info = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local last = at + count_of(ARGV[at])
  local ok, answer = pcall(perform, unpack(ARGV, at, last))
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  answers[#answers + 1] = answer
  at = last + 1
end
return answers
