import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the rules by which a node does not vote. */
export const quarantine: readonly Mutant[] = [
  {
    name: "restarted-node-votes",
    brokenRule: "a node that may have lost data is quarantined while its uptime is less than maxTtlMs + 3 s",
    edits: [
      redis(
        "redlock/restart-guard",
        "if (this.#mayForgetUntil > now) {",
        "if (this.#mayForgetUntil > now + 86_400_000) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "a node that may have lost")],
  },
  {
    name: "only-an-observed-restart-is-quarantined",
    brokenRule: "the uptime of a node counts even if this client never knew an earlier run",
    edits: [
      redis(
        "redlock/restart-guard",
        "before === undefined ? this.#memoryMs - uptimeMs : this.#memoryMs",
        "before === undefined ? 0 * uptimeMs : this.#memoryMs",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "a node that started recently may have")],
  },
  {
    name: "reported-uptime-ends-the-quarantine-of-a-restart",
    brokenRule: "a client that saw the run_id change also waits on its own monotonic clock",
    edits: [
      redis(
        "redlock/restart-guard",
        "before === undefined ? this.#memoryMs - uptimeMs : this.#memoryMs",
        "this.#memoryMs - uptimeMs",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "an observed restart is waited out by the")],
  },
  {
    name: "negative-uptime-is-not-reported",
    brokenRule: "the uptime of a node counts even if its clock was set back after its start",
    edits: ["handshake", "health", "execute-quorum"].map((file) => lua(file, "%-?%d+", "%d+")),
    killers: [byServer("drivers/redis/protocol/scripts/uptime", "negative uptime")],
  },
  {
    name: "unreported-uptime-ends-the-quarantine",
    brokenRule:
      "a client that saw the run_id change also waits on its own monotonic clock, whatever runs it knew before",
    edits: [
      redis("redlock/restart-guard", "reportedUptimeMs > 0 ? reportedUptimeMs : 0;", "reportedUptimeMs;"),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "an uptime that is")],
  },
  {
    name: "identity-is-requested-at-connection-only",
    brokenRule: "every script call to a node of a quorum replies with its run_id and uptime",
    hasCounterexample: true,
    edits: [
      redis("server/server", "      listener.identified?.(runId, uptimeMs);\n", "      void uptimeMs;\n"),
      redis(
        "redlock/vote-request",
        "    this.#acceptVote(voteByReply(this.#host, values, reply));\n",
        '    const { runId = "" } = this.node.guard;\n    this.#acceptVote({ ...voteByReply(this.#host, values, reply), runId });\n',
      ),
    ],
    killers: [byServer("integration/redlock/restart", "is recognised by its reply to a command")],
  },
  {
    name: "vote-of-an-earlier-run-counts",
    brokenRule: "the vote of a run that has ended does not count",
    edits: [redis("redlock/vote-state", " && this.vote?.runId === this.node.guard.runId", "")],
    killers: [byRules("drivers/redis/redlock/queue-members", "a vote from before its node's restart does")],
  },
  {
    name: "notification-of-an-earlier-run-counts",
    brokenRule: "a notification counts only under the run_id that was known when its subscription was made",
    edits: [
      redis(
        "redlock/vote-request",
        "if (ageMs === undefined || grant.runId !== guard.runId || guard",
        "if (ageMs === undefined || guard",
      ),
      redis(
        "server/grant-age",
        "    if (bracket?.runId !== runId) {\n      return undefined;",
        '    if (bracket === undefined || runId === "") {\n      return undefined;',
      ),
      redis(
        "redlock/vote-request",
        "      this.#acceptVote(voteByNotification(this.#host, grant, at, ageMs));\n",
        '      this.#acceptVote({ ...voteByNotification(this.#host, grant, at, ageMs), runId: guard.runId ?? "" });\n',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/pushed-votes", "a pushed grant of another run of the")],
  },
  {
    name: "durable-node-is-trusted-by-default",
    brokenRule: "every restarted node waits, unless the operator promises that durable nodes lose nothing",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/restart-guard",
        'return this.#policy === "trust-durable" && health?.isDurable === true',
        'return this.#policy !== "off" && health?.isDurable === true',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "a durable node waits after a restart")],
  },
  {
    name: "durable-node-is-trusted-at-first-contact",
    brokenRule: "a node may have lost data at first contact, because its earlier run is unknown",
    hasCounterexample: true,
    edits: [
      redis("redlock/restart-guard", "before !== undefined && this.#isTrusted", "before === undefined"),
      redis("redlock/restart-guard", "[...this.#keptRuns, before]", '[...this.#keptRuns, before ?? ""]'),
    ],
    killers: [
      byRules("drivers/redis/redlock/restart-guard", "waits at first contact"),
      byServer("integration/redlock/restart", "a new client that trusts durable nodes"),
    ],
  },
  {
    name: "durable-now-is-durable-before",
    brokenRule: "a node may have lost data unless its earlier run was durable too",
    hasCounterexample: true,
    edits: [
      redis("redlock/restart-guard", "before !== undefined && this.#isTrusted", "before !== undefined"),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "waits if the run before was not durable")],
  },
  {
    name: "durable-before-is-durable-now",
    brokenRule: "a node may have lost data unless its present run is durable too",
    edits: [
      redis(
        "redlock/restart-guard",
        "this.#withoutLoss && isLoaded && this.#isTrusted",
        "this.#withoutLoss && isLoaded",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "waits if it is not durable any longer")],
  },
  {
    name: "switched-on-file-is-loaded",
    brokenRule: "a file that was switched on after the start of a run has no grants of the run before",
    edits: [redis("redlock/restart-guard", "!health.hasRewritten && this.#withoutLoss", "this.#withoutLoss")],
    killers: [byRules("drivers/redis/redlock/restart-guard", "waits if it may have switched")],
  },
  {
    name: "other-file-is-loaded",
    brokenRule: "a run with another append-only file has no grants of the run before",
    edits: [redis("redlock/restart-guard", " && this.#withoutLoss?.files === health.files;", ";")],
    killers: [byRules("drivers/redis/redlock/restart-guard", "waits if it started with another append-only")],
  },
  {
    name: "trusted-restart-ends-an-earlier-wait",
    brokenRule: "a restart without a loss continues the quarantine of the run before",
    edits: [
      redis(
        "redlock/restart-guard",
        "            mayForgetUntil: this.#mayForgetUntil,\n",
        "            mayForgetUntil: -Infinity,\n",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "continues a wait that a restart")],
  },
  {
    name: "durable-replica-is-trusted",
    brokenRule: "a node that was a replica in its earlier run may lack grants of its former primary",
    edits: [redis("redlock/restart-guard", ' === true && health.role === "master";', " === true;")],
    killers: [byRules("drivers/redis/redlock/restart-guard", "waits if it was a replica in the run")],
  },
  {
    name: "refused-config-is-durable",
    brokenRule: "a node counts as not durable if CONFIG is refused",
    edits: [
      redis(
        "server/health",
        'isSynced: settings["appendfsync"] === "always" &&',
        'isSynced: [undefined, "always"].includes(settings["appendfsync"] as string) &&',
      ),
      redis(
        "server/health",
        'settings["no-appendfsync-on-rewrite"] === "no",',
        'settings["no-appendfsync-on-rewrite"] !== "yes",',
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/durability", "a node that does not report when it writes to its disk"),
    ],
  },
  {
    name: "once-a-second-is-durable",
    brokenRule: "a durable node has appendfsync = always",
    edits: [
      redis("server/health", 'settings["appendfsync"] === "always"', 'settings["appendfsync"] !== undefined'),
    ],
    killers: [byRules("drivers/redis/redlock/durability", "writes to its disk once a second")],
  },
  {
    name: "unforced-writes-in-a-rewrite-are-durable",
    brokenRule: "a durable node has no-appendfsync-on-rewrite = no",
    hasCounterexample: true,
    edits: [
      redis(
        "server/health",
        'settings["no-appendfsync-on-rewrite"] === "no",',
        'settings["no-appendfsync-on-rewrite"] !== undefined,',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/durability", "forces no write to its disk during a rewrite")],
  },
  {
    name: "unfinished-file-is-durable",
    brokenRule: "a durable node has finished the first rewrite of its append-only file",
    hasCounterexample: true,
    edits: [
      lua("health", "  and string.find(persistence, 'aof_rewrite_in_progress:0', 1, true)\n", ""),
      lua("health", "  and string.find(persistence, 'aof_rewrite_scheduled:0', 1, true)\n", ""),
    ],
    killers: [byServer("integration/redlock/restart", "first rewrite was not finished")],
  },
  {
    name: "node-votes-before-its-identity-is-known",
    brokenRule: "a run is quarantined until its identity is known",
    edits: [
      redis(
        "redlock/restart-guard",
        "return health ? undefined : { reason:",
        "return health || now > -Infinity ? undefined : { reason:",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "a node does not vote before its")],
  },
  {
    name: "node-with-a-wrong-clock-votes",
    brokenRule: "a node whose time differs from a majority's by more than D cannot vote",
    edits: [
      redis(
        "redlock/clock-agreement",
        "reading.wasInTime = agreeing >= majority;",
        "reading.wasInTime = agreeing >= 1;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "a node with a wrong clock does"), byKept()],
  },
  {
    name: "replica-votes",
    brokenRule: "a replica does not vote",
    edits: [
      redis(
        "redlock/restart-guard",
        'if (health && health.role !== "master") {',
        'if (health && health.role === "") {',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "a replica does not vote")],
  },
  {
    name: "promoted-replica-votes-at-once",
    brokenRule: "a promoted replica is quarantined, because INFO shows its former role",
    edits: [
      redis(
        "redlock/restart-guard",
        "if (before && before.replicationId !== health.replicationId) {",
        'if (before && health.replicationId === "") {',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/restart-guard",
        "a replica does not vote, and not at once when it is promoted",
      ),
    ],
  },
  {
    name: "one-server-votes-twice",
    brokenRule: "two endpoints with the same run_id are refused at start",
    edits: [
      redis(
        "redlock/node-set",
        "index > one.index && guard.runId !== undefined && guard.runId === one.guard.runId,",
        'index > one.index && guard.runId === "" && guard.runId === one.guard.runId,',
      ),
    ],
    killers: [byServer("integration/redlock/duplicate-nodes", "are refused")],
  },
  {
    name: "lost-reply-means-not-durable",
    brokenRule: "only a server that refuses CONFIG counts as not durable, and not one whose reply is lost",
    edits: [
      redis(
        "server/health",
        "    if (!isServerReply((error as Error).cause)) {",
        "    if (!isServerReply((error as Error).cause) && isServerReply(error)) {",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/restarts-and-clocks", "is examined again if its first reply to CONFIG"),
    ],
  },
  {
    name: "late-identity-counts-as-another-run",
    brokenRule: "the identity of another run than the replying one is ignored",
    edits: [
      redis(
        "redlock/restart-guard",
        "    if (this.#runId === undefined) {\n      this.observe(health.runId, health.uptimeMs);\n    } else if",
        "    this.observe(health.runId, health.uptimeMs);\n    if",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/restart-guard", "a late examination of the")],
  },
  {
    name: "vote-of-a-quarantine-passed-around",
    brokenRule:
      "a request whose vote was cleaned up in quarantine is not sent again because a release names its token",
    edits: [redis("redlock/grant-registry", "voteRequest?.isQuarantined === false", "voteRequest")],
    killers: [byKept()],
  },
];
