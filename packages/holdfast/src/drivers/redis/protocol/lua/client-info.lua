-- Tells who the owners of tokens are.
--
-- KEYS     hashes of clients
-- Answers  for each: { field, value, ... }, empty where it is not known

local answers = {}
for i, key in ipairs(KEYS) do
  answers[i] = redis.call('HGETALL', key)
end
return answers
