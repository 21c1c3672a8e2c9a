import { hostname } from "node:os";

import { isoTime } from "../../../runtime/clock.ts";
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
  partsOf: (_lock, _prefix, wallMs) => ({
    keys: [],
    channels: ["", ""],
    detail: `ADDED:${isoTime(wallMs)}@${hostname()}:`,
  }),
};
