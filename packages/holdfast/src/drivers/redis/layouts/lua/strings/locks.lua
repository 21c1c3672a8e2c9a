-- The layouts whose lock is a string with a value of its holder. A layout defines before:
--   value_of(token)   the value that the request writes
--   is_value_of(value, token)
--   token_in(value)   the token in a value of this library's form; '' for another value
--   before_end()      called before the lock key is deleted
--   wake()            called after it is deleted

-- Longer values are those of other programs.
local longest_value = 300
local shown_bytes = 100

local function other_kind()
  local kind = redis.call('TYPE', lock_key).ok
  if kind ~= 'none' and kind ~= 'string' then
    return 'KINDMISMATCH a ' .. kind
  end
end

local function is_free()
  return redis.call('EXISTS', lock_key) == 0
end

local function value_of_lock()
  if redis.call('TYPE', lock_key).ok == 'string' and redis.call('STRLEN', lock_key) <= longest_value then
    return redis.call('GET', lock_key)
  end
end

local function own_ttl(holder)
  local value = value_of_lock()
  return value and is_value_of(value, holder) and remaining_of(lock_key) or nil
end

local function hold(_, ttl)
  redis.call('SET', lock_key, value_of(token), 'PX', ttl)
end

local function prolong(ttl)
  keep(lock_key, ttl)
end

local function end_grant(holder)
  if own_ttl(holder) then
    before_end()
    redis.call('DEL', lock_key)
    wake()
  end
end

-- There are no readers.
local function downgrade()
  return 0
end

local function holders()
  if redis.call('TYPE', lock_key).ok ~= 'string' then
    return {}
  end
  local value = value_of_lock()
  local shown = value or redis.call('GETRANGE', lock_key, 0, shown_bytes - 1)
  return { { string.sub(shown, 1, shown_bytes), redis.call('PTTL', lock_key), '', value and token_in(value) or '' } }
end
