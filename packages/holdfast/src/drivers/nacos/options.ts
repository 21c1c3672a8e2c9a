import { checkInteger, checkOptionNames, checkText, invalidValue } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

export interface NacosOptions {
  /**
   * The ID of the namespace of all configurations: 1 to 64 letters, digits, `_` or `-`. The public namespace is refused, because Nacos
   * copies its configurations between two IDs. @defaultValue "holdfast"
   */
  readonly namespace?: string | undefined;
  /** The group of all configurations: 1 to 128 letters, digits, or `_`, `-`, `.`, `:`. @defaultValue "holdfast" */
  readonly group?: string | undefined;
  /** The start of all paths of the server, its `contextPath`. @defaultValue "/nacos" */
  readonly contextPath?: string | undefined;
  /** The user, if the server requires authentication. Needs permission to read and write the namespace. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /**
   * How long after its TTL a grant without extensions counts as expired by the wall clocks of the servers alone, ms. It must exceed the
   * largest difference between these clocks, and their largest step. @defaultValue 60 000
   */
  readonly maxClockDifferenceMs?: number | undefined;
  /** Sends the requests, for example over TLS with its own certificate authority. @defaultValue the global `fetch` */
  readonly fetch?: typeof fetch | undefined;
  /** How long a reply may take, ms. @defaultValue 2 000 */
  readonly commandTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

export interface ResolvedOptions {
  /** URLs without a path. */
  readonly servers: readonly string[];
  readonly namespace: string;
  readonly group: string;
  /** Empty, or starts with a slash and ends without one. */
  readonly contextPath: string;
  readonly user: string | undefined;
  readonly password: string;
  readonly maxClockDifferenceMs: number;
  readonly fetch: typeof fetch;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

const names = [
  "namespace",
  "group",
  "contextPath",
  "user",
  "password",
  "maxClockDifferenceMs",
  "fetch",
  "commandTimeoutMs",
  "clock",
  "random",
];

/** @throws {TypeError | RangeError} */
export function resolveOptions(servers: string | readonly string[], options: NacosOptions): ResolvedOptions {
  checkOptionNames(options, names);
  const { user, password = "", maxClockDifferenceMs = 60_000, commandTimeoutMs = 2_000 } = options;
  if (options.fetch !== undefined && typeof options.fetch !== "function") {
    throw invalidValue("fetch", "a function", options.fetch);
  }
  return {
    ...checkPlace(options),
    servers: checkServers(servers),
    user: user === undefined ? undefined : checkText("user", user, 512),
    password: password === "" ? "" : checkText("password", password, 512),
    maxClockDifferenceMs: checkInteger("maxClockDifferenceMs", maxClockDifferenceMs, 1_000, 86_400_000),
    fetch: options.fetch ?? fetch,
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function checkPlace({
  namespace = "holdfast",
  group = "holdfast",
  contextPath = "/nacos",
}: NacosOptions): Pick<ResolvedOptions, "namespace" | "group" | "contextPath"> {
  if (namespace === "public") {
    throw new RangeError("Expected `namespace` to be another one than the public namespace");
  }
  return {
    namespace: checkPattern("namespace", namespace, /^[\w-]{1,64}$/, "letters, digits, _ or -"),
    group: checkPattern("group", group, /^[\w.:-]{1,128}$/, "letters, digits, or _ - . :"),
    contextPath: checkPattern("contextPath", contextPath, /^(\/[\w.-]+)*\/?$/, "a path").replace(/\/$/, ""),
  };
}

function checkPattern(name: string, value: unknown, pattern: RegExp, expected: string): string {
  if (typeof value !== "string" || !pattern.test(value)) {
    throw invalidValue(name, `a string: ${expected}`, value);
  }
  return value;
}

function checkServers(servers: string | readonly string[]): string[] {
  const list: readonly unknown[] = Array.isArray(servers) ? servers : [servers];
  if (list.length === 0) {
    throw new RangeError("Expected `servers` to have at least one URL");
  }
  return list.map((server) => {
    if (typeof server !== "string" || !/^https?:\/\/[^/@?#]+\/?$/.test(server)) {
      throw invalidValue(
        "servers",
        "URLs like http://127.0.0.1:8848, without a user and a path",
        "another text",
      );
    }
    return server.replace(/\/$/, "");
  });
}
