-- Reads the descriptions of the clients that own tokens.
--
--   KEYS     hashes of clients
--   Reply    for each: { field, value, ... }, empty for an unknown client
--   Effects  none

local answers = {}
for i, key in ipairs(KEYS) do
  answers[i] = redis.call('HGETALL', key)
end
return answers
