import { byRules, byServer, edit, type Mutant } from "../mutant.ts";

/** Mutants of the driver for ZooKeeper. */
export const zookeeper: readonly Mutant[] = [
  {
    name: "zookeeper-extension-of-any-version",
    brokenRule: "an extension demands the version that was known, because a late one would shorten the TTL",
    edits: [
      edit(
        "drivers/zookeeper/lock-nodes.ts",
        "setData(path, JSON.stringify(value), before.version)",
        "setData(path, JSON.stringify(value))",
      ),
    ],
    killers: [byServer("integration/zookeeper/faults", "a late extension of an earlier holder does not")],
  },
  {
    name: "zookeeper-takeover-of-any-version",
    brokenRule: "a waiter removes an expired grant only in the version that it has seen for the TTL",
    edits: [
      edit(
        "drivers/zookeeper/acquires.ts",
        "[remove(expired.path, expired.version), remove(paths.grant(key))]",
        "[remove(expired.path), remove(paths.grant(key))]",
      ),
    ],
    killers: [byServer("integration/zookeeper/faults", "a waiter does not take a grant that was extended")],
  },
  {
    name: "zookeeper-extension-is-not-observed",
    brokenRule: "the TTL starts again with each extension",
    edits: [
      edit(
        "drivers/zookeeper/grants.ts",
        "const seen = known?.version === version ? known : { version, since: now };",
        "const seen = known ?? { version, since: now };",
      ),
    ],
    killers: [byServer("integration/zookeeper/conformance", "renewal holds a lease for many times its TTL")],
  },
  {
    name: "zookeeper-change-with-the-reply-is-missed",
    brokenRule: "a waiter looks again if the change that it watches arrives together with the reply",
    edits: [
      edit(
        "drivers/zookeeper/acquires.ts",
        "return this.#watched.get(path) === ticket; // the change",
        "return true; // the change",
      ),
    ],
    killers: [byRules("drivers/zookeeper/acquires", "a waiter looks again if the change")],
  },
  {
    name: "zookeeper-numbers-do-not-wrap-around",
    brokenRule: "the sequence numbers of queue entries wrap around",
    edits: [edit("drivers/zookeeper/paths.ts", "return (a - b) | 0;", "return a - b;")],
    killers: [byRules("drivers/zookeeper/paths", "keep the order of sequence numbers")],
  },
  {
    name: "zookeeper-settled-request-is-queued",
    brokenRule:
      "a late request of a caller that has its result takes neither the lock nor a place in its queue",
    edits: [edit("drivers/zookeeper/acquires.ts", "if (isSettled()) {", "if (false as boolean) {")],
    killers: [byRules("drivers/zookeeper/acquires", "a request whose caller got its result")],
  },
];
