-- An owner's metadata lie beside lock_key and count only for the token that they were written with.
-- words: JSON of [field, value, ...]; empty: there are none.
local function write_info(token, ttl, metadata)
  if metadata ~= '' then
    redis.call('DEL', info)
    redis.call('HSET', info, 'token', token, unpack(cjson.decode(metadata)))
    redis.call('PEXPIRE', info, ttl)
  end
end
