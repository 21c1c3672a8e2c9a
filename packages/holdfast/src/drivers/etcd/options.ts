import { checkInteger, checkOptionNames, checkText, invalidValue } from "../../option-checks.ts";
import { systemClock, type Clock } from "../../runtime/clock.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";

export interface EtcdOptions {
  /** The start of all keys in etcd, 1 to 128 bytes. @defaultValue "holdfast/" */
  readonly prefix?: string | undefined;
  /** The user, if the server requires authentication. Needs read and write permission on the prefix. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
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
  readonly endpoints: readonly string[];
  readonly prefix: string;
  readonly user: string | undefined;
  readonly password: string;
  readonly fetch: typeof fetch;
  readonly commandTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

const names = ["prefix", "user", "password", "fetch", "commandTimeoutMs", "clock", "random"];

/** @throws {TypeError | RangeError} */
export function resolveOptions(endpoints: string | readonly string[], options: EtcdOptions): ResolvedOptions {
  checkOptionNames(options, names);
  const { prefix = "holdfast/", user, password = "", commandTimeoutMs = 2_000 } = options;
  if (checkText("prefix", prefix, 128).includes("\0")) {
    throw new RangeError("Expected `prefix` to contain no NUL character");
  }
  if (options.fetch !== undefined && typeof options.fetch !== "function") {
    throw invalidValue("fetch", "a function", options.fetch);
  }
  return {
    endpoints: checkEndpoints(endpoints),
    prefix,
    user: user === undefined ? undefined : checkText("user", user, 512),
    password: password === "" ? "" : checkText("password", password, 512),
    fetch: options.fetch ?? fetch,
    commandTimeoutMs: checkInteger("commandTimeoutMs", commandTimeoutMs, 10, 600_000),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function checkEndpoints(endpoints: string | readonly string[]): string[] {
  const list: readonly unknown[] = Array.isArray(endpoints) ? endpoints : [endpoints];
  if (list.length === 0) {
    throw new RangeError("Expected `endpoints` to have at least one URL");
  }
  return list.map((endpoint) => {
    if (typeof endpoint !== "string" || !/^https?:\/\/[^/@?#]+\/?$/.test(endpoint)) {
      throw invalidValue("endpoints", "URLs like http://127.0.0.1:2379, without a user", "another text");
    }
    return endpoint.replace(/\/$/, "");
  });
}
