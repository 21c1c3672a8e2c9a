-- extend token ttl words
--   Raises the TTL of a grant that is ours; never shortens it and never creates it again.
--   words: what changed hands inside the holder's process (its number, owner, reason); empty: nothing
-- Answers 1 renewed, 0 K is absent, 2 K is another's
local function extend(token, ttl, words)
  local holder = redis.call('GET', K)
  if holder ~= token then
    if not holder then
      let_go()
    end
    return holder and 2 or 0
  end
  raise_ttl(ttl)
  redis.call('PEXPIRE', fence, ttl + retention_ms)
  write_info(token, ttl, words)
  return 1
end

-- verify token
--   Asks whether a grant is still ours, and changes nothing.
-- Answers { 1, remaining TTL in ms }, { 0 } K is absent, { 2 } K is another's
local function verify(token)
  local holder = redis.call('GET', K)
  if holder ~= token then
    return { holder and 2 or 0 }
  end
  return { 1, redis.call('PTTL', K) }
end
