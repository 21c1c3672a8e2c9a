import { byRules, byServer, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of a process whose memory was copied: two processes have the same client id. */
export const clones: readonly Mutant[] = [
  {
    name: "clone-keeps-its-client-id",
    brokenRule: "a process that receives the proof of a clone gets a new client id",
    edits: [redis("server/notification-dispatcher", "        listener.cloned();\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "that notices the other waits with")],
  },
  {
    name: "clone-keeps-its-leases",
    brokenRule: "a process that receives the proof of a clone loses its leases",
    edits: [redis("single/request-registry", '      listener.lost(null, "suspended", clonedError());\n', "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: one server that notices the other loses"),
    ],
  },
  {
    name: "clone-keeps-its-leases-on-a-quorum",
    brokenRule: "a process that receives the proof of a clone loses its leases",
    edits: [redis("redlock/node-events", '      listener.lost(null, "suspended", clonedError());\n', "")],
    killers: [byRules("drivers/redis/single/clones-apart", "a clone: a quorum that notices the other loses")],
  },
  {
    name: "clone-waits-with-its-token",
    brokenRule: "a request continues with a new token if a clone has the same token",
    edits: [redis("single/request-registry", "      request.cloned();\n", "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: one server that notices the other waits"),
    ],
  },
  {
    name: "clone-waits-with-its-token-on-a-quorum",
    brokenRule: "a request continues with a new token if a clone has the same token",
    edits: [redis("redlock/node-events", "      request.cloned();\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "a clone: a quorum that notices the other waits")],
  },
  {
    name: "clone-releases-a-former-token",
    brokenRule: "no operation names a token of a former client id",
    edits: [redis("server/server", "    this.#formerIds.add(this.#registration.clientId);\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "loses its leases, and releases nothing")],
  },
  {
    name: "proof-of-another-server-is-a-clones",
    brokenRule:
      "only the proof of a clone ends leases, because a replica also publishes the proofs of its primary",
    edits: [redis("server/subscriber", "!text.startsWith(this.#pingPrefix) || ", "")],
    killers: [byServer("integration/redlock/replica", "is quarantined, with replica-read-only")],
  },
  {
    name: "own-proof-looks-like-a-clone",
    brokenRule: "a process's own late proof is not the proof of a clone",
    edits: [redis("server/subscriber", "    this.#ownPings.push(text);\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "is not assumed because of")],
  },
  {
    name: "clones-draw-from-one-pool",
    brokenRule: "ids that were drawn in advance are discarded after a jump of the wall clock",
    edits: [edit("runtime/random.ts", " || Math.abs(wallLead - lead) > jumpMs", "")],
    killers: [
      byRules(
        "runtime/random",
        "buffered ids are discarded after a jump of the wall clock, because a clone of the machine has the same ids",
      ),
    ],
  },
];
