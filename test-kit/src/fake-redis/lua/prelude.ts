/**
 * Adapts Lua to Redis 7.0. The chunk is called with redis.call, redis.pcall and the two functions of cjson. It returns the handler
 * of errors that no script has caught.
 */
export const prelude = `
local call, pcall_command, decode, encode = ...
local error, format, getinfo, protected, tostring, type = error, string.format, debug.getinfo, pcall, tostring, type

redis = { call = call, pcall = pcall_command, REDIS_VERSION_NUM = 0x00070000 }
cjson = { decode = decode, encode = encode }
function redis.error_reply(text)
  return { err = string.sub(text, 1, 1) == '-' and string.sub(text, 2) or text }
end
function redis.status_reply(text)
  return { ok = text }
end

-- Errors of Redis are tables. A script that catches one gets its text.
local function caught(ok, failure, ...)
  if not ok and type(failure) == 'table' and type(failure.err) == 'string' then
    failure = failure.err
  end
  return ok, failure, ...
end
function pcall(...)
  return caught(protected(...))
end

-- %d formats a long, which has 64 bits on servers and 32 bits in WebAssembly.
function string.format(pattern, ...)
  if pattern ~= '%d' then
    return format(pattern, ...)
  end
  local number = tonumber((...))
  return format('%.0f', number < 0 and math.ceil(number) or math.floor(number))
end

for _, name in ipairs({ 'debug', 'dofile', 'io', 'loadfile', 'module', 'newproxy', 'os', 'package', 'print', 'require' }) do
  _G[name] = nil
end
KEYS, ARGV = {}, {}
setmetatable(_G, {
  __newindex = function(_, name)
    error('Attempt to modify a readonly table', 2)
  end,
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})

return function(failure)
  local where = getinfo(2, 'nSl')
  if where and where.what == 'C' then
    where = getinfo(3, 'nSl')
  end
  if where and where.source == '@prelude' then
    where = getinfo(4, 'nSl')
  end
  if type(failure) ~= 'table' then
    failure = { err = 'ERR ' .. tostring(failure) }
  end
  if where then
    failure.source, failure.line = where.source, where.currentline
  end
  return failure
end
`;
