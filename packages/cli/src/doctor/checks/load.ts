import { formatDuration } from "../../duration.ts";
import { numberOf, settingOf, type ServerFacts } from "../facts.ts";
import { finding, type Check } from "./check.ts";

const idleTimeout: Check = (facts) => {
  const seconds = Number(settingOf(facts, "timeout") ?? 0);
  return (
    seconds > 0 &&
    finding("perf", "idle-timeout", {
      observed: `timeout is ${seconds} s`,
      impact:
        "connections that wait for their turn are closed; they are opened anew, and a message may be missed meanwhile",
      fix: "let idle connections be, and dead ones be found by keep-alive",
      command: "CONFIG SET timeout 0",
    })
  );
};

const keepAlive: Check = (facts) => {
  const seconds = Number(settingOf(facts, "tcp-keepalive") ?? 60);
  return (
    (seconds === 0 || seconds > 120) &&
    finding("perf", "tcp-keepalive", {
      observed: `tcp-keepalive is ${seconds} s`,
      impact: "a client that vanished is noticed after minutes, and its messages are kept for it",
      fix: "look after a minute",
      command: "CONFIG SET tcp-keepalive 60",
    })
  );
};

const slowScripts: Check = (facts, { ttlMs }) => {
  const limitMs = Number(settingOf(facts, "busy-reply-threshold", "lua-time-limit") ?? 0);
  const keys = Number(/calls=(\d+)/.exec(facts.info.get("cmdstat_keys") ?? "")?.[1] ?? 0);
  return [
    limitMs >= ttlMs &&
      finding("risk", "busy-scripts", {
        observed: `a script may block the server for ${formatDuration(limitMs)} before anybody is told, the TTL is ${formatDuration(ttlMs)}`,
        impact: "no renewal passes meanwhile: locks are lost while their holders work",
        fix: "a longer TTL, or a server without foreign scripts",
      }),
    keys > 0 &&
      finding("perf", "keys-command", {
        observed: `KEYS was called ${keys} times`,
        impact: "each call stops everything else, renewals too, for as long as all keys take",
        fix: "SCAN instead, or a server of its own for locks",
      }),
  ];
};

const connections: Check = (facts) => {
  const [clients, most] = [
    numberOf(facts, "connected_clients") ?? 0,
    numberOf(facts, "maxclients") ?? Infinity,
  ];
  const rejected = numberOf(facts, "rejected_connections") ?? 0;
  return [
    clients > 0.8 * most &&
      finding("risk", "connections-nearly-full", {
        observed: `${clients} of ${most} connections are taken`,
        impact: "a holder that has to connect anew is refused, and loses its lock",
        fix: "raise maxclients, or find out who opens so many",
      }),
    rejected > 0 &&
      finding("risk", "rejected-connections", {
        observed: `${rejected} connections were rejected since the start`,
        impact: "a holder that has to connect anew is refused, and loses its lock",
        fix: "raise maxclients, or find out who opens so many",
      }),
  ];
};

const slowSubscribers: Check = (facts) => {
  const limits = /pubsub (\d+) (\d+) (\d+)/.exec(settingOf(facts, "client-output-buffer-limit") ?? "");
  const hardLimit = Number(limits?.[1] ?? 0);
  return (
    hardLimit > 0 &&
    hardLimit < 1_000_000 &&
    finding("perf", "small-message-buffer", {
      observed: `client-output-buffer-limit for pubsub is ${hardLimit} bytes`,
      impact: "a slow waiter is cut off and misses the message of its turn; it asks again after at most 5 s",
      fix: "the default of 32 MB",
      command: 'CONFIG SET client-output-buffer-limit "pubsub 33554432 8388608 60"',
    })
  );
};

const monitoring: Check = (facts) => [
  settingOf(facts, "latency-monitor-threshold") === "0" &&
    finding("info", "latency-monitor", {
      observed: "latency-monitor-threshold is 0",
      impact: "when a lock is lost by a slow server nothing tells what was slow",
      fix: "note what takes longer than 100 ms",
      command: "CONFIG SET latency-monitor-threshold 100",
    }),
  (settingOf(facts, "notify-keyspace-events") ?? "") !== "" &&
    finding("info", "keyspace-events", {
      observed: `notify-keyspace-events is ${settingOf(facts, "notify-keyspace-events")}`,
      impact: "Holdfast needs none; every lock costs a message more, and an expiry is told late",
      fix: "turn them off if nobody else needs them",
    }),
];

const lateExpiry: Check = (facts) => {
  const stale = numberOf(facts, "expired_stale_perc") ?? 0;
  const hz = Number(settingOf(facts, "hz") ?? 10);
  return [
    stale > 10 &&
      finding("perf", "stale-keys", {
        observed: `about ${stale} % of the keys with a TTL are over and not removed yet`,
        impact: "none for a lock, which is looked at by its own clock; they take memory",
        fix: "raise active-expire-effort",
      }),
    hz < 10 &&
      finding("perf", "hz", {
        observed: `hz is ${hz}`,
        impact: "what is over is removed late; a lock that is asked for is exact all the same",
        fix: "the default of 10",
        command: "CONFIG SET hz 10",
      }),
  ];
};

export const loadChecks: readonly Check[] = [
  idleTimeout,
  keepAlive,
  slowScripts,
  connections,
  slowSubscribers,
  monitoring,
  lateExpiry,
];

/** What could not be looked at is told, and not passed over as well. */
export const uncheckedFindings: readonly Check[] = [
  ({ refused }: ServerFacts) =>
    [...refused].map(([what, why]) =>
      finding("info", "not-checked", {
        observed: `${what} is refused: ${why}`,
        impact: "what depends on it could not be checked, and may be wrong",
        fix: "ask as a user who may, or look in the provider's console",
      }),
    ),
];
