-- A free lock for which nobody waits. The answer of one number is that number alone.
if operations[first + 5] == '' and now <= operations[first + 6] * 1000 and call('EXISTS', K, queue) == 0 then
  local ok, number, last = pcall(put, token, operations[first + 2], operations[first + 3])
  answer, behind = ok and (number == last and number or { 1, number, last, token }), first + 7
end
