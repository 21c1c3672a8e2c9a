import { hostname } from "node:os";

import { onlyMutexes, type LayoutRules } from "./layout.ts";
import { shedlockScript } from "./scripts.generated.ts";

/** The locks of ShedLock's providers for Redis. The prefix is their key prefix and their environment, each with a colon. */
export const shedLockRules: LayoutRules = {
  name: "shedlock",
  library: "shedlock",
  script: shedlockScript,
  kinds: ["mutex"],
  unsupported: onlyMutexes("ShedLock"),
  defaultPrefix: "job-lock:default:",
  type: "string",
  partsOf: () => ({
    keys: [],
    channels: ["", ""],
    detail: `ADDED:${new Date().toISOString()}@${hostname()}:`,
  }),
};
