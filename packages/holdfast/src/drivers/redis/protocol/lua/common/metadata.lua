-- Writes the metadata of a holder with its token. Metadata with another token do not apply to the present holder.
--   metadata   JSON of [field, value, ...]; empty: none
local function write_info(token, ttl, metadata)
  if metadata ~= '' then
    redis.call('DEL', info)
    redis.call('HSET', info, 'token', token, unpack(cjson.decode(metadata)))
    redis.call('PEXPIRE', info, ttl)
  end
end
