-- Acquires a free lock without waiters. The reply for a grant with one number is that number.
if operations[first + 5] == '' and now <= operations[first + 6] * 1000 and call('EXISTS', lock_key, queue) == 0 then
  local ok, number, last = pcall(write_grant, token, operations[first + 2], operations[first + 3])
  answer, next_at = ok and (number == last and number or { 1, number, last, token }), first + 7
end
