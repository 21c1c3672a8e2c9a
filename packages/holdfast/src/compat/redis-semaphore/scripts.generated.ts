// Generated from lua/*.lua by scripts/build-lua.mjs. Do not edit.
import type { Script } from "./script.ts";

export const claimSemaphoreKeyScript: Script = { name: "claim-semaphore-key", sha1: "45a7cdb1c4dcbedff455a45b9fa0b07363f1a0fc", source: "local present = redis.call('TYPE', KEYS[1]).ok\nif present == 'none' or present == 'string' and redis.call('GET', KEYS[1]) == ARGV[1] then\nredis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\nreturn 'none'\nend\nreturn present\n" };
