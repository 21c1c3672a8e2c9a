import { byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of one logical server with replicas, and of the choice of its primary. */
export const replicas: readonly Mutant[] = [
  {
    name: "wait-for-writes-of-another-connection",
    brokenRule:
      "WAIT covers only writes of its own connection, and not a grant by another connection's release",
    hasCounterexample: true,
    edits: [
      redis(
        "replicas/replica-acks",
        "await ownConnection.run(script, keys, args);",
        "await connection.run(script, keys, args);",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "a grant by another's release is")],
  },
  {
    name: "wait-after-a-reconnect",
    brokenRule: "WAIT covers only writes of its own connection",
    hasCounterexample: true,
    edits: [
      redis("replicas/replica-acks", "this.#lost?.();", "if (this.#minReplicas < 0) this.#lost?.();"),
      redis("replicas/replica-acks", "if (epoch !== this.#epoch) {", "if (epoch > this.#epoch) {"),
    ],
    killers: [byServer("integration/replicas/min-replicas", "counts for nothing: the new connection")],
  },
  {
    name: "shared-wait-after-a-reconnect",
    brokenRule:
      "WAIT covers only writes of its own connection, also if it follows the wait of a lost connection",
    hasCounterexample: true,
    edits: [redis("replicas/replica-acks", "if (epoch !== this.#epoch) {", "if (epoch > this.#epoch) {")],
    killers: [byServer("drivers/redis/replicas/shared-wait", "is not acknowledged if their connection")],
  },
  {
    name: "no-replica-is-enough",
    brokenRule: "too few acknowledgements of replicas cause a release and replicas-not-reached",
    edits: [
      redis(
        "replicas/replica-acks",
        "acknowledged < this.#minReplicas) {",
        "acknowledged < 0 * this.#minReplicas) {",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "without an acknowledgement")],
  },
  {
    name: "grant-is-not-rolled-back",
    brokenRule: "too few acknowledgements of replicas cause a release and replicas-not-reached",
    edits: [
      redis(
        "replicas/replicated-driver",
        "const release = this.release(key, token, engineExpiry(validity));",
        "const release = Promise.resolve([key, token, engineExpiry(validity)]);",
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "without an acknowledgement")],
  },
  {
    name: "extension-that-no-replica-has",
    brokenRule: "an extension counts only after enough replicas have it",
    edits: [
      redis(
        "single/driver",
        'return { outcome: "unknown", error };',
        'return { outcome: "extended", validity: validFrom({ now: this.clock.now(), wall: this.clock.wall() }, ttlMs) };',
      ),
    ],
    killers: [byServer("integration/replicas/min-replicas", "an extension counts once a replica has it")],
  },
  {
    name: "extension-that-writes-nothing",
    brokenRule: "an extension writes even if the TTL stays, because WAIT waits for the last write only",
    hasCounterexample: true,
    edits: [
      lua(
        "single/lock-context",
        "redis.call('PEXPIRE', lock_key, digits(ttl_ms))",
        "redis.call('PEXPIRE', lock_key, digits(ttl_ms), 'GT')",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/extend", "waits for the write: a mutex"),
      byServer("integration/replicas/old-acknowledgement", "in the millisecond of its grant: a mutex"),
    ],
  },
  {
    name: "extension-of-a-shared-lock-writes-nothing",
    brokenRule: "an extension writes even if the TTL stays, because WAIT waits for the last write only",
    hasCounterexample: true,
    edits: [lua("common/shared-holders", "  elseif is_written then", "  elseif is_written and false then")],
    killers: [
      byServer("drivers/redis/protocol/scripts/extend", "waits for the write: a reader"),
      byServer("integration/replicas/old-acknowledgement", "in the millisecond of its grant: a reader"),
    ],
  },
  {
    name: "adopted-validity-that-no-replica-has",
    brokenRule: "the validity of an adopted lease is one that enough replicas have acknowledged",
    hasCounterexample: true,
    edits: [redis("replicas/replicated-driver", "if (ttlMs < 1) {", "if (ttlMs < Infinity) {")],
    killers: [byServer("integration/replicas/old-acknowledgement", "for an adopted lease: a mutex")],
  },
  {
    name: "reply-of-a-replica-counts",
    brokenRule: "READONLY: the reply of a replica does not count",
    edits: [lua("execute-single", "return require_primary(answers)", "return answers")],
    killers: [byServer("integration/replicas/replica", "refuses reads as well, and no")],
  },
  {
    name: "latch-of-a-replica",
    brokenRule: "READONLY: the reply of a replica does not count",
    edits: [
      lua(
        "common/dispatch",
        " or name == 'countDown' or name == 'waitLatch' or name == 'setLimit' then",
        " or name == 'setLimit' then",
      ),
    ],
    killers: [byServer("integration/replicas/replica", "refuses reads as well, and no")],
  },
  {
    name: "grant-of-an-aborted-wait-is-kept",
    brokenRule: "the signal ends a wait, and a concurrent grant is released",
    edits: [
      redis("replicas/replicated-request", "void this.#rollBack(); // the extension", "// the extension"),
    ],
    killers: [
      byServer(
        "integration/replicas/min-replicas",
        "gets its error at once, and the grant is released: a waiter",
      ),
    ],
  },
  {
    name: "proof-by-a-replica",
    brokenRule: "the subscription is proved first, and never by a replica",
    edits: [lua("handshake", "if ARGV[2] ~= 'n' and role == 'master' then", "if ARGV[2] ~= 'n' then")],
    killers: [byServer("integration/replicas/replica", "does not verify notifications")],
  },
  {
    name: "client-stays-with-the-former-primary",
    brokenRule:
      "after a failover the client connects to the new primary, even if the former primary still runs",
    edits: [redis("clients/ioredis-sentinel", "startsWith(`${name} `)", "startsWith(`${name}-`)")],
    killers: [byServer("integration/sentinel/failover", "ioredis 6 of a primary that continues as one")],
  },
];
