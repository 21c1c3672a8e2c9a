import { byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of requests that a server executes after their latest time. */
export const latestTimes: readonly Mutant[] = [
  {
    name: "free-lock-is-granted-too-late",
    brokenRule: "an acquire that is executed after its latest time has no effect",
    hasCounterexample: true,
    edits: [lua("single/fast-acquire", " and now <= operations[first + 6] * 1000", "")],
    killers: [byServer("drivers/redis/protocol/scripts/late-operations", "does nothing to a free lock")],
  },
  {
    name: "queue-entry-is-added-too-late",
    brokenRule: "an acquire that is executed after its latest time has no effect",
    hasCounterexample: true,
    edits: [
      lua(
        "common/dispatch",
        "(name == 'acquire' or name == 'yield') and now > select(7, ...) * 1000",
        "name == 'yield' and now > select(7, ...) * 1000",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/late-operations", "gets no queue entry after")],
  },
  {
    name: "vote-is-granted-too-late",
    brokenRule: "a node that executes an acquire after its latest time does nothing",
    edits: [lua("execute-quorum", " and now <= operations[first + 6] * 1000", "")],
    killers: [
      byRules("drivers/redis/redlock/late-votes", "a request that a node executes too late gets no vote"),
    ],
  },
  {
    name: "late-acquire-deletes-the-stored-vote",
    brokenRule: "a late acquire does not change the remembered vote of its token",
    edits: [
      lua(
        "common/dispatch",
        "  if (name == 'acquire' or name == 'yield') and now > select(7, ...) * 1000 then\n" +
          "    return { 4 }\n" +
          "  end\n",
        "",
      ),
      lua(
        "common/dispatch",
        "  if is_shared_lock(name, ...) then\n    load_shared_ops()\n    return shared.perform",
        "  if (name == 'acquire' or name == 'yield') and now > select(7, ...) * 1000 then\n" +
          "    return { 4 }\n" +
          "  end\n" +
          "  if is_shared_lock(name, ...) then\n    load_shared_ops()\n    return shared.perform",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/late-votes", "does not make the node forget a vote whose key"),
    ],
  },
  {
    name: "late-yield-counts-as-confirmed",
    brokenRule: "a yield is repeated until a node confirms it",
    edits: [
      redis(
        "redlock/vote-request",
        "if (Number(values[0]) !== acquireStatus.executedTooLate) {",
        "if (values.length > 0) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/vote-yield", "a vote whose yield came too late")],
  },
  {
    name: "vote-is-yielded-too-late",
    brokenRule: "a node that executes a yield after its latest time does nothing",
    edits: [lua("common/dispatch", "(name == 'acquire' or name == 'yield')", "name == 'acquire'")],
    killers: [byServer("drivers/redis/protocol/scripts/late-votes", "returns no vote, if")],
  },
  {
    name: "late-request-is-repeated-with-its-old-token",
    brokenRule:
      "the server reports a request after its latest time, and the client repeats the request with a new token",
    edits: [
      redis(
        "single/request",
        "        this.#restart();\n        return;",
        "        this.sendIfOpen();\n        return;",
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a request that the server executed too late is"),
    ],
  },
];
