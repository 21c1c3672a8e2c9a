import { systemClock, type Clock } from "../../runtime/clock.ts";
import type { Driver } from "../../driver.ts";
import { checkInteger, checkOptionNames, checkObject, checkText } from "../../options.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import { Client, type TlsOptions } from "./client.ts";
import { HttpDriver } from "./driver.ts";
import { readServiceUrl } from "./url.ts";

export interface HttpOptions {
  /** By which the service knows us (`Authorization: Bearer`). @defaultValue none */
  readonly token?: string | undefined;
  /** For `https:`, where it is not to be as Node does it by itself. */
  readonly tls?: TlsOptions | undefined;
  /** How long an answer may take, ms; a wait for a lock takes as long as it is to take. @defaultValue 5 000 */
  readonly requestTimeoutMs?: number | undefined;
  /** Time and timers. @defaultValue those of this process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

/**
 * Locks by a lock service. Exclusion reaches as far as that of the service's engine. A loss by force is told at the next renewal, all
 * other losses in time.
 * @param url where the service is: `http:` or `https:`; a token may stand in it as in `https://:token@host`
 * @throws {TypeError | RangeError} for a URL or an option that is not understood
 */
export function http(url: string | URL, options: HttpOptions = {}): Driver {
  checkOptionNames(options, ["token", "tls", "requestTimeoutMs", "clock", "random"]);
  const { token, tls, requestTimeoutMs = 5_000, clock = systemClock, random = systemRandom } = options;
  checkInteger("requestTimeoutMs", requestTimeoutMs, 1, 600_000);
  const read = readServiceUrl(url);
  if (tls !== undefined) {
    checkTls(tls, read.address);
  }
  const given = token === undefined ? read.token : checkText("token", token, 8_192);
  const client = new Client({ url: read.address, token: given, tls, clock });
  return new HttpDriver(client, random, requestTimeoutMs);
}

function checkTls(tls: object, { protocol }: URL): void {
  checkObject("tls", tls);
  checkOptionNames(tls, ["ca", "cert", "key", "servername", "rejectUnauthorized"]);
  if (protocol !== "https:") {
    throw new TypeError("Expected `tls` to be given with an https: URL only");
  }
}
