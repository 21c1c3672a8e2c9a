-- What is done with a lock that several may hold. The operations are called and answer as those of a mutex. On a quorum's node a grant
-- has one number.

-- Grants to who stands first, as long as there is room for him: readers at the head go together, and who needs much room is not
-- passed over. As `grant_next` of a mutex: an error of the publish puts the member back.
-- Returns the answer to `own`, a member, if its turn has come; whether more may be left to serve.
local function serve(own, own_ttl, own_want)
  local answer
  for _ = 1, 64 do
    local member, score = first_in_line()
    local waits_for, weight = nil, nil
    if member then
      waits_for, weight = share_of(member)
    end
    if not waits_for or waits_for ~= kind then
      return answer, false
    end
    local token, client, ttl, want, deadline, channel, whole_ttl = parse(member)
    local is_alive = tonumber(deadline) == 0 or tonumber(deadline) >= now_ms or member == own
    local may_hold = is_alive and weight <= limit
    if may_hold and used + weight > limit then
      return answer, false
    end
    note_ttl()
    redis.call('ZREM', queue, member)
    head = nil
    local has_it = holding_of(token) -- by an earlier question
    if is_alive and member ~= own and (has_it or not may_hold) then
      publish(channel, client, 'again ' .. token) -- who asks again has that grant, or is told of the limit
    elseif not has_it and may_hold and member == own then
      local first, last, left = admit(token, weight, own_ttl, own_want)
      answer = { 1, first, last, token, left }
    elseif not has_it and may_hold and client == giver and not given then
      local first, last = admit(token, weight, whole_ttl, want)
      given = { 1, 0, token, first, last, tonumber(whole_ttl) }
    elseif not has_it and may_hold then
      local first, last, left = admit(token, weight, ttl, want)
      local numbers = digits(first) .. ' ' .. digits(last)
      local message = table.concat({ 'grant', token, numbers, digits(now), lasting(ttl, left), run_id(), K }, ' ')
      local heard = publish(channel, client, message)
      if heard == 0 then
        remove(token)
      elseif type(heard) == 'table' then
        remove(token)
        put_back(with_ttl({ member, score }))
        error(heard.err, 0)
      end
    end
  end
  return answer, true
end

-- Asks for the vote of this quorum's node back, unless who has it has won.
local function inquire(holder_of_it, number, channel)
  local client = client_of(holder_of_it)
  publish(string.sub(channel, -1), client, table.concat({ 'inquiry', holder_of_it, digits(number) }, ' '))
end

-- Rivals that came later and are in our way are asked to give it back.
local function inquire_all(token, terms)
  local _, weight = share_of(token)
  for _, other in ipairs(redis.call('ZRANGE', K, 0, 63)) do
    local number, others_weight = holding_of(other)
    if weight + others_weight > limit and precedes(token, other) then
      inquire(other, number, terms)
    end
  end
end

-- So is who asks again while he is in the way of whoever came first: he may have missed it, and that one has no votes to ask again for.
local function inquire_again(token, number, weight, terms)
  local first = parse(first_in_line() or '')
  local _, wanted = share_of(first or '')
  if wanted and weight + wanted > limit and precedes(first, token) then
    inquire(token, number, terms)
  end
end

-- By whom: who will be over first.
local function held_by_others(member, wait)
  local position = member and redis.call('ZRANK', queue, member) or -1
  local first, expiry = first_to_end()
  local left = first and expiry - now_ms or -1
  local number = nil
  if is_quorum and first then
    number = holding_of(first)
  end
  return { 0, left, position, first or '', (wait == '1' or wait == '3') and run_id() or '', number }
end

local function admitted_again(token, number, member, ttl, words)
  local expiry = tonumber(redis.call('ZSCORE', K, token))
  local _, weight = holding_of(token)
  local last = last_of(token)
  if expiry < now_ms + ttl then
    redis.call('ZADD', K, now_ms + ttl, token)
    if is_quorum then
      write_holder(token, number, weight, now_ms + ttl)
    end
  end
  outlive(tonumber(ttl))
  redis.call('ZREM', queue, member)
  note(token, words)
  return { 1, number, last, token, is_quorum and left_to_wait(weight < limit) or nil }
end

-- There is room, and nobody is before us.
local function admit_now(token, weight, ttl, want, words, known_number)
  local first, last, left = admit(token, weight, ttl, want, known_number)
  note(token, words)
  return { 1, first, last, token, left }
end

-- Whoever stands in the queue is served in turn, and us with them. Who is granted and has more to serve repeats as well, and is
-- granted again: nobody else would come for them soon.
local function take_place(token, member, ttl, want, wait, words)
  local answer, is_more = serve(member, ttl, want)
  if is_more then
    return { 3 }
  elseif answer then
    note(token, words)
    return answer
  end
  local its_number = holding_of(token)
  if its_number then
    return admitted_again(token, its_number, member, ttl, words)
  end
  return has_expired_ones and { 3 } or held_by_others(member, wait)
end

local function only_try(token, weight, ttl, want, words)
  local _, is_more = serve()
  local number = holding_of(token) -- an earlier question stood in the queue
  if is_more then
    return { 3 }
  elseif number then
    return admitted_again(token, number, '', ttl, words)
  elseif first_in_line() or used + weight > limit then
    return has_expired_ones and { 3 } or held_by_others(nil, '0')
  end
  return admit_now(token, weight, ttl, want, words)
end

local share = {}

function share.acquire(token, terms, ttl, want, wait, words)
  local member = token .. ' ' .. terms
  local number, known_weight = holding_of(token)
  local _, weight = share_of(token)
  if number == 0 then -- restored, its numbers are lost: it may not have been told them
    local first, last = next_numbers(want, newest)
    write_holder(token, first, known_weight, nil, last - first + 1)
    number = first
  end
  local waits = not number and first_in_line() and redis.call('ZSCORE', queue, member)
  if not number and (not waits or limit and weight > limit) then
    check(token) -- also of who waits already, where the limit was lowered
  end
  if number then
    redis.call('ZREM', queue, member)
    head = nil
    if is_quorum then
      inquire_again(token, number, known_weight, terms)
    end
    return take_place(token, member, ttl, want, wait, words)
  elseif wait == '0' then
    return only_try(token, weight, ttl, want, words)
  elseif not first_in_line() and used + weight <= limit then
    return admit_now(token, weight, ttl, want, words)
  end
  stand_in_line(token, member)
  if is_quorum then
    inquire_all(token, terms)
  end
  local answer = take_place(token, member, ttl, want, wait, words)
  if answer[1] == 0 and not waits and tonumber(wait) < 3 and answer[3] >= queue_bound then
    redis.call('ZREM', queue, member)
    return { 2 }
  end
  return answer
end

function share.release(token, terms, is_own)
  local is_ours = holding_of(token)
  if is_ours then
    giver = is_own == '1' and client_of(token) or nil
    remove(token) -- who holds does not wait
  else
    leave(token, terms)
    head = nil
  end
  local _, is_more = serve()
  if given then
    given[2] = is_more and 1 or 0
    return given
  end
  return { is_ours and 1 or 0, is_more and 1 or 0, first_to_end() or '' }
end

local function why_not_any_more(token)
  return redis.call('HGET', terms_key(), 'broken') == token and 3 or 0
end

function share.extend(token, ttl, words, number)
  local own_number = holding_of(token)
  if not own_number then
    local reason = why_not_any_more(token)
    serve()
    return is_quorum and { reason } or reason
  elseif number ~= '' and own_number > tonumber(number) then
    return is_quorum and { 0 } or 0
  end
  admitted_again(token, own_number, '', ttl, words)
  return is_quorum and { 1, own_number } or 1
end

function share.verify(token)
  local number = holding_of(token)
  if not number then
    return { why_not_any_more(token) }
  end
  return { 1, redis.call('ZSCORE', K, token) - now_ms, number }
end

-- Every holder, as { token, left in ms, first number, weight, words, last number }.
local function holders()
  local found = {}
  local held = redis.call('ZRANGE', K, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do
    local number, weight = holding_of(held[i])
    local words = redis.call('HGET', info, 'w' .. held[i])
    found[#found + 1] = { held[i], held[i + 1] - now_ms, digits(number), weight, words or '', digits(last_of(held[i])) }
  end
  return found
end

-- breakGrant number kind reason
--   As of a mutex; a token may stand for the number, where a quorum's nodes gave different ones.
function share.breakGrant(number, channel, reason)
  local named = tonumber(number)
  for _, holder_found in ipairs(holders()) do
    local first, last = tonumber(holder_found[3]), tonumber(holder_found[6])
    if holder_found[1] == number or named and named >= first and named <= last then
      local token = holder_found[1]
      local client = client_of(token)
      publish(channel, client, 'broken ' .. cjson.encode({ token, K, reason }))
      remove(token)
      redis.call('HSET', terms_key(), 'broken', token)
      keep_terms(math.max(holder_found[2], 1000)) -- for as long as the holder may believe in its lease
      local _, is_more = serve()
      return { 1, is_more and 1 or 0 }
    end
  end
  return { 0, 0 }
end

-- inspect of such a lock answers more: { "", -2, first, last, [], waiters, members, kind, limit, holders }
function share.inspect()
  local first, last = numbers()
  return {
    '',
    -2,
    first and digits(first) or '',
    last and digits(last) or '',
    {},
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
    kind,
    limit,
    holders(),
  }
end

function share.yield(token, terms, number, ttl, _, words)
  if holding_of(token) ~= tonumber(number) then
    return share.acquire(token, terms, ttl, '1', '2', words)
  end
  remove(token)
  stand_in_line(token, token .. ' ' .. terms)
  return take_place(token, token .. ' ' .. terms, ttl, '1', '2', words)
end

function share.agree(token, number)
  local own_number, weight, expiry = holding_of(token)
  if not own_number then
    return { 0 }
  end
  number = tonumber(number)
  if own_number < number then
    own_number = number
    write_holder(token, number, weight, expiry)
    local _, last = numbers()
    if last < number then
      redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
    end
  end
  return { 1, own_number, own_number }
end

function share.refill(token, terms, ttl, number, _, latest)
  local own_number, known_weight, expiry = holding_of(token)
  local _, weight = share_of(token)
  number = tonumber(number)
  if now_ms > tonumber(latest) then
    return { 0 }
  elseif own_number then
    if own_number > number then
      write_holder(token, number, known_weight, expiry)
    end
    return admitted_again(token, math.min(number, own_number), '', ttl, '')
  end
  leave(token, terms)
  head = nil
  check(token)
  serve()
  if first_in_line() or used + weight > limit then
    return { 0 }
  end
  if number > (newest or 0) then
    redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
  end
  return admit_now(token, weight, ttl, '1', '', number)
end

-- downgrade token terms
--   A writer is a reader from now on, with the same token.
-- Answers { 1, 1 if more may be left to serve }, or { why not }
function share.downgrade(token)
  local number, weight, expiry = holding_of(token)
  if not number then
    return { why_not_any_more(token) }
  end
  used = used - weight + 1 -- a repeat finds a reader, among others
  write_holder(token, number, 1, expiry)
  local _, is_more = serve()
  return { 1, is_more and 1 or 0 }
end

-- setLimit limit
--   From now on a semaphore has this limit; who holds keeps what he has.
-- Answers { 1, 1 if more may be left to serve }
function share.setLimit(wanted)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  local present = first and (share_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= 'semaphore' then
    error('KINDMISMATCH ' .. present, 0)
  end
  kind, limit = 'semaphore', tonumber(wanted)
  if is_quorum or present then
    redis.call('HSET', terms_key(), 'kind', kind, 'limit', wanted)
    keep_terms(math.max(redis.call('PTTL', K), 60000))
  end
  local _, is_more = serve()
  return { 1, is_more and 1 or 0 }
end

-- Whether nobody holds K any more, where it is ours: who has expired is dropped by this.
local function is_over()
  return pcall(look) and redis.call('EXISTS', K) == 0
end

function share.perform(name, ...)
  look((...), name)
  if not share[name] then
    error('KINDMISMATCH ' .. (kind or 'mutex'), 0)
  end
  local answer = share[name](...)
  forget_terms()
  return answer
end
