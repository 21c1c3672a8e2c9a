import { byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of requests that a server executes after their latest time (core-2, 3.2). */
export const latestTimes: readonly Mutant[] = [
  {
    name: "free-lock-is-granted-too-late",
    brokenRule: "an acquire that is executed behind its latest time has no effect (core-2, 3.2)",
    hasCounterexample: true,
    edits: [lua("single/fast-acquire", " and now <= operations[first + 6] * 1000", "")],
    killers: [byServer("drivers/redis/protocol/scripts/late-operations", "does nothing to a free lock")],
  },
  {
    name: "place-is-given-too-late",
    brokenRule: "an acquire that is executed behind its latest time has no effect (core-2, 3.2)",
    hasCounterexample: true,
    edits: [
      lua(
        "common/dispatch",
        "(name == 'acquire' or name == 'yield') and now > select(7, ...) * 1000",
        "name == 'yield' and now > select(7, ...) * 1000",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/late-operations", "gets no place behind a holder")],
  },
  {
    name: "vote-is-given-too-late",
    brokenRule: "a node that executes an acquire behind its latest time does nothing (core-2, 3.2)",
    edits: [lua("execute-quorum", " and now <= operations[first + 6] * 1000", "")],
    killers: [
      byRules("drivers/redis/redlock/late-votes", "a request that a node executes too late gets no vote"),
    ],
  },
  {
    name: "late-acquire-ends-what-is-remembered",
    brokenRule: "a late acquire leaves what the node remembers of its token (core-2, 3.2 and 3.4)",
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
          "  if shares(name, ...) then\n    know_shares()\n    return share.perform",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/late-votes",
        "does not make the node forget the vote whose key has vanished",
      ),
    ],
  },
  {
    name: "late-yield-counts-as-one",
    brokenRule: "a vote that is asked back is given back until a node says that it is (4.5; core-2, 3.2)",
    edits: [
      redis(
        "redlock/vote-request",
        "if (Number(values[0]) !== executedTooLate) {",
        "if (values.length > 0) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/vote-yield", "giving back came too late is given back again")],
  },
  {
    name: "vote-is-yielded-too-late",
    brokenRule: "a node that executes a yield behind its latest time does nothing (core-2, 3.2)",
    edits: [lua("common/dispatch", "(name == 'acquire' or name == 'yield')", "name == 'acquire'")],
    killers: [byServer("drivers/redis/protocol/scripts/late-votes", "a yield gives nothing back")],
  },
  {
    name: "several-keys-are-given-too-late",
    brokenRule: "an acquire that is executed behind its latest time has no effect (core-2, 3.2)",
    edits: [lua("acquire-many", "if now > ARGV[1] * 1000 then", "if now < 0 then")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/acquire-many",
        "are not touched where the request comes too late",
      ),
    ],
  },
  {
    name: "what-came-too-late-is-asked-for-with-its-old-token",
    brokenRule:
      "a server that executes it later answers so, and the client asks with a new token (core-2, 3.2)",
    edits: [
      redis(
        "single/request",
        "        this.#restart();\n        return;",
        "        this.trySend();\n        return;",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/single/late-requests",
        "what the server executed too late is asked for with a new token",
      ),
    ],
  },
];
