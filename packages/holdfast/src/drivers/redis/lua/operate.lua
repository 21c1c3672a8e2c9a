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

--- @include "_state.lua"
--- @include "_grant.lua"
--- @include "_acquire.lua"
--- @include "_release.lua"
--- @include "_extend.lua"
--- @include "_inspect.lua"

local operations = {
  acquire = { acquire, 6 },
  passOn = { pass_on, 6 },
  release = { release, 2 },
  extend = { extend, 3 },
  verify = { verify, 1 },
  breakGrant = { break_grant, 3 },
  inspect = { inspect, 0 },
}

local answers, at = { now }, 3
for i = 1, #KEYS, 4 do
  K, queue, fence, info = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local operation = operations[ARGV[at]]
  local last = at + operation[2]
  local ok, answer = pcall(operation[1], unpack(ARGV, at + 1, last))
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  answers[#answers + 1] = answer
  at = last + 1
end
return answers
