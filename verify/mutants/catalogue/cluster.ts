import { byServer, redis, type Mutant } from "../mutant.ts";

/** Mutants of Redis Cluster. See docs/drivers/cluster.md. */
export const cluster: readonly Mutant[] = [
  {
    name: "cluster-unresponsive-node-is-trusted",
    brokenRule: "if a node is unresponsive, the client requests the slot map from the other nodes",
    edits: [redis("cluster/cluster-node", "        this.#listener.unresponsive(this);\n", "")],
    killers: [byServer("integration/cluster/failover", "whatever its client")],
  },
  {
    name: "cluster-subscribes-for-a-free-lock",
    brokenRule: "a free lock needs no subscription",
    edits: [
      redis(
        "server/client-registration",
        "if (!this.#isClosed && this.#host.hasBreakSubscription) {",
        "this.#host.listen();\n    if (!this.#isClosed && this.#host.hasBreakSubscription) {",
      ),
      redis("server/server", "this.usedAt = this.#options.clock.now();\n    }\n", "this.listen();\n    }\n"),
    ],
    killers: [byServer("drivers/redis/cluster/driver", "an uncontended lock makes")],
  },
  {
    name: "cluster-accepts-stray-braces",
    brokenRule: "a key whose braces put its queue into another slot is refused",
    edits: [
      redis(
        "cluster/directory",
        "derived.some((other) => slotOf(other) !== slot)",
        "derived.some((other) => slotOf(other) < 0 && slot < 0)",
      ),
    ],
    killers: [byServer("drivers/redis/cluster/driver", "keys whose braces")],
  },
  {
    name: "cluster-outdated-node-is-trusted",
    brokenRule: "after MOVED the client corrects its slot map, even if a node with an old map contradicts",
    edits: [redis("cluster/router", "if (map.source !== address) {", "if (map.source === undefined) {")],
    killers: [byServer("integration/cluster/redirects", "MOVED is believed over a node that")],
  },
];
