import { invalidValue } from "../../../option-checks.ts";
import { onlyMutexes, type LayoutRules } from "./layout.ts";
import { pythonRedisLockScript } from "./scripts.generated.ts";

const lockPrefix = "lock:";

/** The `Lock` of python-redis-lock. Its waiters block on a list, which a release fills. */
export const pythonRedisLockRules: LayoutRules = {
  name: "python-redis-lock",
  library: "python-redis-lock",
  script: pythonRedisLockScript,
  kinds: ["mutex"],
  unsupported: onlyMutexes("python-redis-lock"),
  defaultPrefix: lockPrefix,
  type: "string",
  checkPrefix: (prefix) => {
    if (!prefix.startsWith(lockPrefix)) {
      throw invalidValue("prefix", `a text that begins with "${lockPrefix}"`, prefix);
    }
  },
  partsOf: (lock) => ({
    keys: [`lock-signal:${lock.slice(lockPrefix.length)}`],
    channels: ["", ""],
    detail: "",
  }),
};
