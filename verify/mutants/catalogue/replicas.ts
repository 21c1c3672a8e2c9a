import { byServer, lua, redis, type Mutant } from "../mutant.ts";

/** One logical server with replicas: section 9, and who is its primary. */
export const replicas: readonly Mutant[] = [
  {
    name: "wait-for-what-another-connection-wrote",
    brokenRule:
      "WAIT speaks of its own connection's writes: a grant written by another's release would be waited for vacuously (9)",
    hasCounterexample: true,
    edits: [
      redis(
        "replicas/replica-acks",
        "await ownConnection.run(script, keys, args);",
        "await connection.run(script, keys, args);",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "a grant by another's release is not told")],
  },
  {
    name: "wait-on-a-connection-made-anew",
    brokenRule: "WAIT speaks of its own connection's writes (9)",
    hasCounterexample: true,
    edits: [redis("replicas/replica-acks", "this.#lost?.();", "if (this.#minReplicas < 0) this.#lost?.();")],
    killers: [byServer("integration/replicas/min-replicas", "counts for nothing: the new connection")],
  },
  {
    name: "no-replica-is-enough",
    brokenRule: "fewer acknowledgements → release, replicas-not-reached (9)",
    edits: [
      redis(
        "replicas/replica-acks",
        "acknowledged < this.#minReplicas) {",
        "acknowledged < 0 * this.#minReplicas) {",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "where none acknowledges")],
  },
  {
    name: "grant-is-not-rolled-back",
    brokenRule: "fewer acknowledgements → release, replicas-not-reached (9)",
    edits: [
      redis(
        "replicas/replicated-driver",
        "const release = this.release(key, token, engineExpiry(validity));",
        "const release = Promise.resolve([key, token, engineExpiry(validity)]);",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "where none acknowledges")],
  },
  {
    name: "extension-that-no-replica-has",
    brokenRule: "no extension counts before so many replicas have it",
    edits: [
      redis(
        "replicas/replicated-driver",
        'return { outcome: "unknown", error };',
        'return { outcome: "renewed", validity: validFrom({ now: this.clock.now(), wall: this.clock.wall() }, ttlMs) };',
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "an extension counts once a replica has it")],
  },
  {
    name: "answer-of-a-replica",
    brokenRule: "READONLY: a replica's answer is no answer (9)",
    edits: [lua("execute-single", "return require_primary(answers)", "return answers")],
    killers: [byServer("integration/replicas/replica", "what only reads is refused there as well")],
  },
  {
    name: "several-keys-of-a-replica",
    brokenRule: "READONLY: a replica's answer is no answer (9)",
    edits: [
      lua(
        "acquire-many",
        "return require_primary({ now, i, holder_text(holder) })",
        "return { now, i, holder_text(holder) }",
      ),
    ],
    killers: [byServer("integration/replicas/replica", "what only reads is refused there as well")],
  },
  {
    name: "latch-of-a-replica",
    brokenRule: "READONLY: a replica's answer is no answer (9)",
    edits: [
      lua(
        "common/dispatch",
        " or name == 'countDown' or name == 'waitLatch' or name == 'setLimit' then",
        " or name == 'setLimit' then",
      ),
    ],
    killers: [byServer("integration/replicas/replica", "what only reads is refused there as well")],
  },
  {
    name: "grant-that-nobody-waits-for-is-kept",
    brokenRule: "the signal ends the waiting; a grant that races it is released",
    edits: [
      redis("replicas/replicated-request", "void this.#rollBack(); // the extension", "// the extension"),
    ],
    killers: [
      byServer(
        "integration/replicas/min-replicas",
        "is told at once, and the grant is given back: who waits",
      ),
    ],
  },
  {
    name: "proof-by-a-replica",
    brokenRule: "subscription first, and proved; it never succeeds by a replica (3)",
    edits: [lua("handshake", "if ARGV[2] ~= 'n' and role == 'master' then", "if ARGV[2] ~= 'n' then")],
    killers: [byServer("integration/replicas/replica", "its own messages prove nothing")],
  },
  {
    name: "former-primary-is-stayed-with",
    brokenRule: "after a failover we go to the new primary by ourselves, also where the former one lives",
    edits: [redis("clients/ioredis-sentinel", "startsWith(`${name} `)", "startsWith(`${name}-`)")],
    killers: [byServer("integration/sentinel/failover", "ioredis 6 of a primary that goes on as one")],
  },
];
