// Generated from lua/*.lua by scripts/build-lua.mjs. Do not edit.
import type { Script } from "./script.ts";

export const writeFencedScript: Script = { name: "write-fenced", sha1: "4fcf6885e55b6f172fad717a547f29d6c91ae8e4", source: "local fence = redis.call('GET', KEYS[1]) or '0'\nlocal token = ARGV[1]\nif not string.find(fence, '^%d+$') then\nreturn redis.error_reply('ERR the fence is not a number: ' .. KEYS[1])\nend\nif #fence > #token or (#fence == #token and fence > token) then\nreturn 0\nend\nredis.call('SET', KEYS[1], token)\nlocal at = 2\nwhile at <= #ARGV do\nlocal last = at + tonumber(ARGV[at])\nredis.call(unpack(ARGV, at + 1, last))\nat = last + 1\nend\nreturn 1\n" };
