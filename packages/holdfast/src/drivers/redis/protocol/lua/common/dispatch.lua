-- Performs one operation on the kind of lock that it names or finds: mutex, shared lock or latch.

local latch
local function perform_on_latch(name, ...)
  latch = latch or prepare_latch()
  if not latch[name] then
    error('KINDMISMATCH latch', 0)
  end
  return latch[name](...)
end

local shared, is_free
local function load_shared_ops()
  if not shared then
    shared, is_free = prepare_shared()
  end
end

-- Whether the operation is for a shared lock. A token states its mode. Without a token, the present holders or waiters decide.
local function is_shared_lock(name, token)
  local mark = token and string.byte(token, 67)
  if mark then
    return mark > 57
  end
  local found = redis.call('TYPE', lock_key).ok
  if found ~= 'none' then
    return found == 'zset'
  end
  local waiter = redis.call('ZRANGE', queue, 0, 0)[1]
  if waiter then
    return is_shared(waiter)
  end
  return name == 'setLimit' or redis.call('HEXISTS', settings_key(), 'kind') == 1
end

local mutex
-- Whether `holder` has been read.
local is_read
local function perform(name, ...)
  -- An operation after its latest time changes nothing, not even the remembered vote of its token.
  if (name == 'acquire' or name == 'yield') and now > select(7, ...) * 1000 then
    return { 4 }
  end
  if is_quorum and not holder and redis.call('EXISTS', lock_key) == 0 then
    is_read = false
    if restore_vote(name, ...) and not is_shared_lock(name, ...) then
      load_shared_ops()
      is_free()
    end
  end
  if is_shared_lock(name, ...) then
    load_shared_ops()
    return shared.perform(name, ...)
  end
  if not is_read then
    holder = read_holder()
  end
  if not holder and (name == 'countDown' or name == 'waitLatch' or name == 'leaveLatchQueue') then
    return perform_on_latch(name, ...)
  end
  mutex = mutex or prepare_mutex()
  if not mutex[name] then
    error('KINDMISMATCH mutex', 0)
  end
  return mutex[name](...)
end

-- Repeats a failed operation if lock_key has another kind, because then the failed operation changed nothing. A latch performs its own
-- operations. If all holders of a shared lock have expired, lock_key is free.
local function perform_retrying_kind(failure, ...)
  local found = redis.pcall('TYPE', lock_key).ok
  if found == 'hash' and redis.call('HEXISTS', lock_key, 'latch') == 1 then
    return pcall(perform_on_latch, ...)
  elseif found == 'zset' and not is_shared_lock(...) then
    load_shared_ops()
    if is_free() then
      return pcall(perform, ...)
    end
  end
  return false, failure
end

local function perform_on_present_kind(...)
  local ok, answer = pcall(perform, ...)
  if ok then
    return ok, answer
  end
  return perform_retrying_kind(answer, ...)
end

-- The number of arguments of an operation.
local function count_of(name)
  if name == 'acquire' or name == 'yield' then
    return 7
  elseif name == 'refill' or name == 'waitLatch' then
    return 6
  elseif name == 'release' and not is_quorum then
    return 3
  elseif name == 'release' or name == 'downgrade' or name == 'leaveLatchQueue' then
    return 2
  elseif name == 'countDown' then
    return 5
  elseif name == 'extend' or name == 'recordedBreak' then
    return 4
  elseif name == 'inspect' then
    return 0
  end
  return (name == 'verify' or name == 'setLimit') and 1 or 3
end

-- Whether the reply proves a primary, because a grant, queue entry, release or renewal was written. A repeated operation on a latch may
-- write nothing.
local function is_of_primary(name, answer)
  if name == 'verify' or name == 'inspect' or name == 'countDown' or name == 'waitLatch' or name == 'setLimit' then
    return false
  elseif type(answer) == 'number' then
    return answer == 1 or name == 'acquire'
  elseif name == 'acquire' and answer[1] == 0 then
    return answer[3] >= 0
  end
  return answer[1] == 1
end

-- Performs one operation, whose arguments begin at `first`.
--   found    the holder of lock_key; nil or an error if the holder is not known
--   waiter   a waiter that the fast path removed from the queue; nil: none
--
-- Returns the reply, whether the reply proves a primary, the index of the next operation, and the error of a replica.
local function perform_isolated(name, first, found, waiter)
  holder, removed_waiter, queue_ttl, releasing_client, handover_reply = found, waiter, nil, nil, nil
  is_read = found ~= nil and type(found) ~= 'table'
  local next_at = first + count_of(name)
  local ok, answer
  if name == 'recordedBreak' then
    ok, answer = pcall(recorded_break, perform_on_present_kind, unpack(operations, first, next_at - 1))
  else
    ok, answer = perform_on_present_kind(name, unpack(operations, first, next_at - 1))
  end
  if ok then
    return answer, is_of_primary(name, answer), next_at
  end
  -- A failed operation must not dequeue a waiter.
  if removed_waiter and removed_waiter[1] then
    put_back(removed_waiter)
  end
  local message = type(answer) == 'table' and answer.err or tostring(answer)
  return { 'error', message }, false, next_at, string.match(message, 'READONLY .*')
end
