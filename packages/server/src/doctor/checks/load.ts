import { formatDuration } from "../duration.ts";
import { numberOf, settingOf, type ServerFacts } from "../facts.ts";
import { finding, type Check } from "./check.ts";

const idleTimeout: Check = (facts) => {
  const seconds = Number(settingOf(facts, "timeout") ?? 0);
  return (
    seconds > 0 &&
    finding("perf", "idle-timeout", {
      observed: `timeout is ${seconds} s`,
      impact:
        "idle connections of waiters are closed; after the reconnect a notification may have been missed",
      fix: "do not close idle connections, and find dead ones by keep-alive",
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
      impact: "a vanished client is detected after minutes, and its notifications are buffered until then",
      fix: "detect dead clients after a minute",
      command: "CONFIG SET tcp-keepalive 60",
    })
  );
};

const slowScripts: Check = (facts, { ttlMs }) => {
  const limitMs = Number(settingOf(facts, "busy-reply-threshold", "lua-time-limit") ?? 0);
  const keys = Number(/calls=(\d+)/.exec(facts.info.get("cmdstat_keys") ?? "")?.[1] ?? 0);
  const slowest = facts.slowestScriptMs ?? 0;
  return [
    slowest > ttlMs / 20 &&
      finding(slowest > ttlMs / 3 ? "risk" : "perf", "slow-scripts", {
        observed: `a script in the slow log blocked the server for ${formatDuration(slowest)}; the TTL is ${formatDuration(ttlMs)}`,
        impact: "renewals wait for the script, and locks with a short TTL are lost",
        fix: "find the script, and run it on another server; afterwards clear the log",
        command: "SLOWLOG GET 128; SLOWLOG RESET",
      }),
    limitMs >= ttlMs &&
      finding("risk", "busy-scripts", {
        observed: `a script may block the server for ${formatDuration(limitMs)} before clients get an error; the TTL is ${formatDuration(ttlMs)}`,
        impact: "renewals wait during that time, so locks are lost while their holders work",
        fix: "use a longer TTL, or a server without other scripts",
      }),
    keys > 0 &&
      finding("perf", "keys-command", {
        observed: `KEYS was called ${keys} times`,
        impact: "each call blocks all commands, renewals too, while the server reads all keys",
        fix: "use SCAN instead, or a separate server for locks",
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
        fix: "raise maxclients, or find the program that opens many connections",
      }),
    rejected > 0 &&
      finding("risk", "rejected-connections", {
        observed: `${rejected} connections were rejected since the start`,
        impact: "a holder that has to connect anew is refused, and loses its lock",
        fix: "raise maxclients, or find the program that opens many connections",
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
      impact: "a slow waiter is disconnected and misses the notification of its grant; it polls within 5 s",
      fix: "use the default of 32 MB",
      command: 'CONFIG SET client-output-buffer-limit "pubsub 33554432 8388608 60"',
    })
  );
};

const monitoring: Check = (facts) => [
  settingOf(facts, "latency-monitor-threshold") === "0" &&
    finding("info", "latency-monitor", {
      observed: "latency-monitor-threshold is 0",
      impact: "if a slow server loses a lock, no record shows the slow command",
      fix: "record commands that take longer than 100 ms",
      command: "CONFIG SET latency-monitor-threshold 100",
    }),
  (settingOf(facts, "notify-keyspace-events") ?? "") !== "" &&
    finding("info", "keyspace-events", {
      observed: `notify-keyspace-events is ${settingOf(facts, "notify-keyspace-events")}`,
      impact: "Holdfast needs no keyspace notifications, and each lock costs one more message",
      fix: "turn them off if no other program needs them",
    }),
];

const lateExpiry: Check = (facts) => {
  const stale = numberOf(facts, "expired_stale_perc") ?? 0;
  const hz = Number(settingOf(facts, "hz") ?? 10);
  return [
    stale > 10 &&
      finding("perf", "stale-keys", {
        observed: `about ${stale} % of the keys with a TTL have expired and are not removed yet`,
        impact: "none for locks, because each command checks the expiry itself; the keys use memory",
        fix: "raise active-expire-effort",
      }),
    hz < 10 &&
      finding("perf", "hz", {
        observed: `hz is ${hz}`,
        impact: "expired keys are removed late; requests for locks are not affected",
        fix: "use the default of 10",
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

/** The settings and facts that the server refused to show. */
export const uncheckedFindings: readonly Check[] = [
  ({ refused }: ServerFacts) =>
    [...refused].map(([what, why]) =>
      finding("info", "not-checked", {
        observed: `${what} is refused: ${why}`,
        impact: "the checks that need these facts did not run",
        fix: "run doctor as a user with these rights, or look in the provider's console",
      }),
    ),
];
