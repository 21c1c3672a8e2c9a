import { systemClock, type Clock } from "../../runtime/clock.ts";
import type { Driver } from "../../driver.ts";
import { checkInteger, checkOptionNames, checkObject, checkText } from "../../option-checks.ts";
import { isWorkerd, nodeModule } from "../../runtime/node-modules.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import { Client } from "./client.ts";
import { HttpDriver } from "./driver.ts";
import { FetchTransport } from "./fetch-transport.ts";
import { NodeTransport } from "./node-transport.ts";
import type { TlsOptions, Transport } from "./transport.ts";
import { readServiceUrl } from "./url.ts";

export interface HttpOptions {
  /** The token that identifies the client to the service (`Authorization: Bearer`). @defaultValue none */
  readonly token?: string | undefined;
  /** TLS for `https:`, on Node, Bun and Deno only. @defaultValue the defaults of the runtime */
  readonly tls?: TlsOptions | undefined;
  /** How long a reply may take, ms. This time does not limit the wait for a lock. @defaultValue 5 000 */
  readonly requestTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

/**
 * Locks by a lock service. Exclusion reaches as far as the exclusion of the service's engine. If an operator breaks a lease, its next
 * renewal reports the loss. Every other loss is reported by the lease's deadline.
 * @param url the service's address, `http:` or `https:`; it may contain the token, as in `https://:token@host`
 * @throws {TypeError | RangeError} for an invalid URL or option
 * @example
 * ```ts
 * const locks = createLocks(http("https://locks.example.com", { token: process.env.LOCK_TOKEN }));
 * ```
 */
export function http(url: string | URL, options: HttpOptions = {}): Driver {
  checkOptionNames(options, ["token", "tls", "requestTimeoutMs", "clock", "random"]);
  const { token, tls, requestTimeoutMs = 5_000, clock = systemClock, random = systemRandom } = options;
  checkInteger("requestTimeoutMs", requestTimeoutMs, 1, 600_000);
  const service = readServiceUrl(url);
  if (tls !== undefined) {
    checkTls(tls, service.address);
  }
  const usedToken = token === undefined ? service.token : checkText("token", token, 8_192);
  const client = new Client({
    url: service.address,
    token: usedToken,
    transport: createTransport(service.address, tls),
    clock,
  });
  return new HttpDriver(client, random, requestTimeoutMs);
}

function checkTls(tls: object, { protocol }: URL): void {
  checkObject("tls", tls);
  checkOptionNames(tls, ["ca", "cert", "key", "servername", "rejectUnauthorized"]);
  if (protocol !== "https:") {
    throw new TypeError("Expected `tls` to be given with an https: URL only");
  }
}

/** By `node:http` on Node, Bun and Deno: it has options for TLS, and less work for each request. Elsewhere by `fetch`. */
function createTransport(url: URL, tls: TlsOptions | undefined): Transport {
  const http = isWorkerd() ? undefined : nodeModule("node:http");
  if (http) {
    const used = url.protocol === "https:" ? (nodeModule("node:https") ?? http) : http;
    return new NodeTransport(used, tls);
  } else if (tls) {
    throw new TypeError("Expected no option `tls`: this runtime opens its connections itself, by `fetch`");
  }
  return new FetchTransport();
}
