-- acquire token ttl latest wait
--   As acquire, on a mutex, with one fencing number and without metadata.
--   wait    empty for a try, else "<wait> <maximum length of the queue> <queue_args>"
--   Reply   the server's time, which is the fencing number too; or the replies of the general form
--
-- The time is the next fencing number unless the counter has reached it, for example with two grants in one microsecond.
now = read_time()
if now <= ARGV[4] * 1000 and redis.pcall('EXISTS', lock_key, queue) == 0 then
  local counter = redis.pcall('GET', KEYS[1]) or '0'
  if type(counter) == 'string' and string.find(counter, '^%d+$') and tonumber(counter) < now then
    local number = string.format('%.0f', now)
    -- The counter is written first, so a failed write grants nothing.
    local refused = redis.pcall('SET', KEYS[1], number).err
      or redis.pcall('SET', lock_key, ARGV[2] .. ' ' .. number .. ' 1', 'PX', ARGV[3]).err
    if not refused then
      return now
    end
  end
end
local wait, bound, queue_args = string.match(ARGV[5], '^(%d) (%d+) (.*)$')
queue_bound = bound
operations = { 'acquire', ARGV[2], queue_args or '', ARGV[3], '1', wait or '0', '', ARGV[4] }
