import { shown } from "../../duration.ts";
import { numberOf, settingOf, type Facts } from "../facts.ts";
import { found, type Check } from "./check.ts";

const idleTimeout: Check = (facts) => {
  const seconds = Number(settingOf(facts, "timeout") ?? 0);
  return (
    seconds > 0 &&
    found("perf", "idle-timeout", {
      observed: `timeout is ${seconds} s`,
      danger:
        "connections that wait for their turn are closed; they are opened anew, and a message may be missed meanwhile",
      advice: "let idle connections be, and dead ones be found by keep-alive",
      command: "CONFIG SET timeout 0",
    })
  );
};

const keepAlive: Check = (facts) => {
  const seconds = Number(settingOf(facts, "tcp-keepalive") ?? 60);
  return (
    (seconds === 0 || seconds > 120) &&
    found("perf", "tcp-keepalive", {
      observed: `tcp-keepalive is ${seconds} s`,
      danger: "a client that vanished is noticed after minutes, and its messages are kept for it",
      advice: "look after a minute",
      command: "CONFIG SET tcp-keepalive 60",
    })
  );
};

const slowScripts: Check = (facts, { ttlMs }) => {
  const limitMs = Number(settingOf(facts, "busy-reply-threshold", "lua-time-limit") ?? 0);
  const keys = Number(/calls=(\d+)/.exec(facts.info.get("cmdstat_keys") ?? "")?.[1] ?? 0);
  return [
    limitMs >= ttlMs &&
      found("risk", "busy-scripts", {
        observed: `a script may block the server for ${shown(limitMs)} before anybody is told, the TTL is ${shown(ttlMs)}`,
        danger: "no renewal passes meanwhile: locks are lost while their holders work",
        advice: "a longer TTL, or a server without foreign scripts",
      }),
    keys > 0 &&
      found("perf", "keys-command", {
        observed: `KEYS was called ${keys} times`,
        danger: "each call stops everything else, renewals too, for as long as all keys take",
        advice: "SCAN instead, or a server of its own for locks",
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
      found("risk", "connections-nearly-full", {
        observed: `${clients} of ${most} connections are taken`,
        danger: "a holder that has to connect anew is refused, and loses its lock",
        advice: "raise maxclients, or find out who opens so many",
      }),
    rejected > 0 &&
      found("risk", "rejected-connections", {
        observed: `${rejected} connections were rejected since the start`,
        danger: "a holder that has to connect anew is refused, and loses its lock",
        advice: "raise maxclients, or find out who opens so many",
      }),
  ];
};

const slowSubscribers: Check = (facts) => {
  const limits = /pubsub (\d+) (\d+) (\d+)/.exec(settingOf(facts, "client-output-buffer-limit") ?? "");
  const hardest = Number(limits?.[1] ?? 0);
  return (
    hardest > 0 &&
    hardest < 1_000_000 &&
    found("perf", "small-message-buffer", {
      observed: `client-output-buffer-limit for pubsub is ${hardest} bytes`,
      danger: "a slow waiter is cut off and misses the message of its turn; it asks again after at most 5 s",
      advice: "the default of 32 MB",
      command: 'CONFIG SET client-output-buffer-limit "pubsub 33554432 8388608 60"',
    })
  );
};

const monitoring: Check = (facts) => [
  settingOf(facts, "latency-monitor-threshold") === "0" &&
    found("info", "latency-monitor", {
      observed: "latency-monitor-threshold is 0",
      danger: "when a lock is lost by a slow server nothing tells what was slow",
      advice: "note what takes longer than 100 ms",
      command: "CONFIG SET latency-monitor-threshold 100",
    }),
  (settingOf(facts, "notify-keyspace-events") ?? "") !== "" &&
    found("info", "keyspace-events", {
      observed: `notify-keyspace-events is ${settingOf(facts, "notify-keyspace-events")}`,
      danger: "Holdfast needs none; every lock costs a message more, and an expiry is told late",
      advice: "turn them off if nobody else needs them",
    }),
];

const lateExpiry: Check = (facts) => {
  const stale = numberOf(facts, "expired_stale_perc") ?? 0;
  const hz = Number(settingOf(facts, "hz") ?? 10);
  return [
    stale > 10 &&
      found("perf", "stale-keys", {
        observed: `about ${stale} % of the keys with a TTL are over and not removed yet`,
        danger: "none for a lock, which is looked at by its own clock; they take memory",
        advice: "raise active-expire-effort",
      }),
    hz < 10 &&
      found("perf", "hz", {
        observed: `hz is ${hz}`,
        danger: "what is over is removed late; a lock that is asked for is exact all the same",
        advice: "the default of 10",
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
export const uncheckedChecks: readonly Check[] = [
  ({ refused }: Facts) =>
    [...refused].map(([what, why]) =>
      found("info", "not-checked", {
        observed: `${what} is refused: ${why}`,
        danger: "what depends on it could not be checked, and may be wrong",
        advice: "ask as a user who may, or look in the provider's console",
      }),
    ),
];
