-- extend token ttl metadata number
--   Raises the TTL of the token's grant. It never lowers the TTL, and never creates a grant. A grant is written even if its TTL stays.
--   metadata   new metadata after a hand-over in the holder's process (number, owner, reason); empty: unchanged
--   number     the fencing token of the lease; empty: unknown. A delayed request may have made a later grant of the same token, with a
--              greater number. That grant is not extended, because another token may have held the lock in between.
--   Reply   { 1, first number of the grant (0: unknown) } renewed, or { loss status }
--           loss status: 0 lock_key is absent, 2 another token holds lock_key, 3 an operator broke the grant
--   Effects a free lock_key is granted to the next waiter

-- The loss status of a token. A break is recorded in info, because the notification may not have reached the holder.
local function loss_status(token)
  local record = redis.call('HMGET', info, 'token', 'broken')
  if record[1] == token and record[2] then
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
--   Reply   { 1, remaining TTL in ms, first number of the grant (0: unknown) }, or { loss status } as of extend
--   Effects none
local function verify(token)
  if holder ~= token then
    return { loss_status(token) }
  end
  return { 1, redis.call('PTTL', lock_key), grant_numbers() or 0 }
end
