-- A free lock is taken.
local function take(token)
  local ttl, want, words = operations[first + 2], operations[first + 3], operations[first + 5]
  if is_quorum then
    floor = near(operations[first - 1])
  end
  local number = put(token, ttl, want)
  if words ~= '' then
    write_info(token, ttl, words)
  end
  return number
end

-- acquire of a lock that nobody holds, release of one that is ours, where nobody waits: the same as in their own files.
-- Answers less than they do: the grant's first number, the others are known to who asked; 1, it was released and nothing is left.
-- Nothing where it is another case, or a lock that several may hold. A release that finds a waiter leaves it in `popped`.
local popped
local read_for -- the operation that `holder` was read for
local function usual(name)
  local is_acquire = name == 'acquire'
  if not is_acquire and name ~= 'release' then
    return nil
  end
  local token = operations[first]
  if (string.byte(token, 67) or 58) > 57 then
    return nil
  end
  holder = redis.call('GET', K)
  read_for = at
  if is_acquire then
    if not holder and redis.call('EXISTS', queue) == 0 then
      return take(token)
    end
  elseif holder == token then
    local next_waiter = redis.call('ZPOPMIN', queue)
    if not next_waiter[1] then
      redis.call('DEL', K, info)
      return 1
    end
    popped = next_waiter
  end
end
