-- extend token ttl metadata number
--   Raises the TTL of a grant that is ours; never shortens it and never creates it again.
--   words: what changed hands inside the holder's process (its number, owner, reason); empty: nothing
--   number: of the lease. A later grant of the same token, made by a request that came late, has a greater one and is not extended:
--   others may have held the lock in between. Empty: not known
-- Answers 1 renewed, or why not: 0 lock_key is absent, 2 lock_key is another's, 3 an operator broke it
--         of a quorum's node { 1, first number of the grant (0: not known) }, or { why not }

-- A break leaves word beside the key for a holder that the message did not reach.
local function loss_status(token)
  local left = redis.call('HMGET', info, 'token', 'broken')
  if left[1] == token and left[2] then
    return 3
  end
  return holder and 2 or 0
end

local function extend(token, ttl, metadata, number)
  if holder ~= token then
    local reason = loss_status(token)
    grant_next_if_free()
    return is_quorum and { reason } or reason
  elseif number ~= '' and (grant_numbers() or 0) > tonumber(number) then
    return is_quorum and { 0 } or 0
  end
  write_info(token, raise_ttl(ttl), metadata)
  return is_quorum and { 1, grant_numbers() or 0 } or 1
end

-- verify token
--   Asks whether a grant is still ours, and changes nothing.
-- Answers { 1, remaining TTL in ms, first number of the grant (0: not known) }, or { why not }, as extend says it
local function verify(token)
  if holder ~= token then
    return { loss_status(token) }
  end
  return { 1, redis.call('PTTL', lock_key), grant_numbers() or 0 }
end
