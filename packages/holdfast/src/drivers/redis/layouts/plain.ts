import { onlyMutexes, type LayoutRules } from "./layout.ts";
import { plainScript } from "./scripts.generated.ts";

/** Locks whose value is the holder's token, on a server without channels. A request costs money and a long way, so polls are rarer. */
export const plainRules: LayoutRules = {
  name: "plain",
  library: "another",
  script: plainScript,
  kinds: ["mutex"],
  unsupported: onlyMutexes("upstash()"),
  defaultPrefix: "lock:",
  pollLimits: { initialMs: 50, longestMs: { first: 500, later: 1_000 } },
  type: "string",
  partsOf: () => ({ keys: [], channels: ["", ""], detail: "" }),
};
