import { invalidValue } from "../../../option-checks.ts";
import { onlyMutexes, type LayoutRules } from "./layout.ts";
import { springScript } from "./scripts.generated.ts";

/** The `RedisLockRegistry` of Spring Integration, in both of its modes. The prefix is the registry key and a colon. */
export const springRules: LayoutRules = {
  name: "spring",
  library: "spring",
  script: springScript,
  kinds: ["mutex"],
  unsupported: onlyMutexes("Spring's RedisLockRegistry"),
  defaultPrefix: undefined,
  type: "string",
  checkPrefix: (prefix) => {
    if (!/.:$/s.test(prefix)) {
      throw invalidValue("prefix", "the registry key of Spring and a colon", prefix);
    }
  },
  commonChannel,
  partsOf: (lock, prefix) => {
    const channel = `${commonChannel(prefix)}:${lock}`;
    return { keys: [], channels: [channel, commonChannel(prefix)], detail: "", wakeChannel: () => channel };
  },
};

function commonChannel(prefix: string): string {
  return `${prefix.slice(0, -1)}-channel`;
}
