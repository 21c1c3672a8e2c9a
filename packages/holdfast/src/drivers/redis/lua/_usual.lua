-- acquire of a lock that nobody holds, release of one that is ours, where nobody waits: the same answers as in their own
-- files. Answers nothing where it is another case. A release that finds a waiter leaves it in `popped`.
local popped
local function usual(name, token, _, ttl, want, _, words)
  if name == 'acquire' and not holder and redis.call('EXISTS', queue) == 0 then
    return granted(token, ttl, want, words)
  elseif name == 'release' and holder == token then
    local first = redis.call('ZPOPMIN', queue)
    if not first[1] then
      redis.call('DEL', K, info)
      return { 1, 0, '' }
    end
    popped = first
  end
end
