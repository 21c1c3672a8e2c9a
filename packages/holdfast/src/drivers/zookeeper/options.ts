import { checkInteger, checkOptionNames, checkText, invalidValue } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import type { HostAndPort } from "./wire/host.ts";

export interface ZooKeeperOptions {
  /** The node under which all nodes of the driver are, created if missing. @defaultValue "/holdfast" */
  readonly root?: string | undefined;
  /** The user for the scheme `digest`. Only this user may then use the nodes that the driver creates. @defaultValue none */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /**
   * The requested session timeout, ms. The server may grant another one. It bounds how long a crashed or frozen waiter blocks the queue.
   * Leases do not depend on it. @defaultValue 6 000
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * How long after its TTL a grant without extensions counts as expired by the wall clocks of the servers alone, ms. It must exceed the
   * largest difference between these clocks, and their largest step. @defaultValue 60 000
   */
  readonly maxClockDifferenceMs?: number | undefined;
  /** How long a reply may take, ms. @defaultValue 2 000 */
  readonly commandTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

export interface ResolvedOptions {
  readonly hosts: readonly HostAndPort[];
  readonly root: string;
  /** `user:password` */
  readonly credentials: string | undefined;
  readonly sessionTimeoutMs: number;
  readonly maxClockDifferenceMs: number;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

const names = [
  "root",
  "user",
  "password",
  "sessionTimeoutMs",
  "maxClockDifferenceMs",
  "commandTimeoutMs",
  "clock",
  "random",
];
const defaultPort = 2181;

/** @throws {TypeError | RangeError} */
export function resolveOptions(
  servers: string | readonly string[],
  options: ZooKeeperOptions,
): ResolvedOptions {
  checkOptionNames(options, names);
  const { sessionTimeoutMs = 6_000, maxClockDifferenceMs = 60_000, commandTimeoutMs = 2_000 } = options;
  return {
    hosts: checkServers(servers),
    root: checkRoot(options.root),
    credentials: checkCredentials(options.user, options.password),
    sessionTimeoutMs: checkInteger("sessionTimeoutMs", sessionTimeoutMs, 1_000, 600_000),
    maxClockDifferenceMs: checkInteger("maxClockDifferenceMs", maxClockDifferenceMs, 1_000, 86_400_000),
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function checkServers(servers: unknown): HostAndPort[] {
  const list: readonly unknown[] = Array.isArray(servers) ? servers : [servers];
  if (list.length === 0) {
    throw new RangeError("Expected `servers` to have at least one server");
  }
  return list.map((server) => {
    const [, host = "", port = String(defaultPort)] =
      /^(\[[0-9a-f:.%]+\]|[^\s:/@?#,]+)(?::(\d{1,5}))?$/i.exec(String(server)) ?? [];
    if (typeof server !== "string" || host === "" || Number(port) < 1 || Number(port) > 65_535) {
      throw invalidValue("servers", "texts like host:2181", server);
    }
    return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
  });
}

function checkRoot(root: unknown = "/holdfast"): string {
  const isPath =
    typeof root === "string" && /^(\/|(\/(?!\.{1,2}(\/|$))[^/\p{Cc}\p{Surrogate}]+)+)$/u.test(root);
  if (!isPath || root === "/zookeeper" || root.startsWith("/zookeeper/")) {
    throw invalidValue("root", "a path like /holdfast, outside of /zookeeper", root);
  }
  return root;
}

function checkCredentials(user: unknown, password: unknown): string | undefined {
  if (user === undefined && password === undefined) {
    return undefined;
  }
  if (user === undefined || password === undefined) {
    throw new TypeError("Expected `user` and `password` to be given together, got only one");
  }
  const name = checkText("user", user as string, 512);
  if (name.includes(":")) {
    throw new RangeError("Expected `user` to contain no colon, because ZooKeeper reads user:password");
  }
  try {
    return `${name}:${checkText("password", password as string, 512)}`;
  } catch {
    throw new TypeError("Expected `password` to be a string of 1 to 512 bytes, got another value");
  }
}
