/**
 * What Redis 7.0 adds to Lua, and takes away. It is called with redis.call, redis.pcall and the two halves of cjson, and answers
 * the handler of errors that no script has caught.
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

-- What Redis raises is a table; who catches it gets its words.
local function caught(ok, failure, ...)
  if not ok and type(failure) == 'table' and type(failure.err) == 'string' then
    failure = failure.err
  end
  return ok, failure, ...
end
function pcall(...)
  return caught(protected(...))
end

-- %d takes a long, which is of 64 bits on servers and of 32 here.
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
