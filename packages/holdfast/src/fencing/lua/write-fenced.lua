-- Runs commands unless a larger fencing token was seen before.
--
--   KEYS[1]  the fence, which is the largest token so far in decimal digits, or absent
--   ARGV[1]  the fencing token, in decimal digits without leading zeros
--   ARGV[2+] for each command the number of its parts, then its parts
--   Reply    1 if the commands ran, 0 if the fence is larger than the token
--   Effects  raises the fence to the token, then runs the commands. An error of a command ends the script. The effects before it stay
--
-- Tokens are compared as texts, because a Lua number is exact up to 2^53 only.

local fence = redis.call('GET', KEYS[1]) or '0'
local token = ARGV[1]
if not string.find(fence, '^%d+$') then
  return redis.error_reply('ERR the fence is not a number: ' .. KEYS[1])
end
if #fence > #token or (#fence == #token and fence > token) then
  return 0
end
redis.call('SET', KEYS[1], token)
local at = 2
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, last))
  at = last + 1
end
return 1
