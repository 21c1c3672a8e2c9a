import type { WireProblem } from "holdfast/http";
import type { Context } from "hono";

import type { RouteEnv } from "./context.ts";
import type { Log } from "./log.ts";

/** Refusals that an attack or a wrong setting causes. */
const logged: ReadonlySet<number> = new Set([401, 403, 429]);

/** Each client has one line of a code in this time, ms. */
const quietMs = 10_000;
/** How many clients are remembered. */
const maxClients = 1_000;
/** How many addresses without a known token have a line in that time. A client may have any number of addresses. */
const maxStrangers = 100;

/**
 * Logs refused requests as warnings: the first of each client, and then one in a while with the number of those since, which are only
 * for debugging. The detail of a refusal names keys and principals, but no token and no header.
 */
export class RefusalLog {
  readonly #log: Log;
  readonly #seen = new Map<string, { nextAt: number; more: number }>();
  #strangers = { until: 0, count: 0 };

  constructor(log: Log) {
    this.#log = log;
  }

  /** @returns whether the problem is such a refusal */
  report(c: Context<RouteEnv>, { status, code, detail }: WireProblem): boolean {
    if (!logged.has(status)) {
      return false;
    }
    const principal = (c.var.principal as { readonly name: string } | undefined)?.name;
    const remote = c.env.incoming.socket.remoteAddress;
    const entry = { event: "refused", method: c.req.method, route: c.req.routePath, status, code, principal, remote, detail }; // prettier-ignore
    const more = this.#moreOf(`${code} ${principal ?? remote ?? ""}`);
    if (more === undefined || (principal === undefined && this.#hasManyStrangers())) {
      this.#log({ level: "debug", ...entry });
    } else {
      this.#log({ level: "warn", ...entry, ...(more > 0 && { more }) });
    }
    return true;
  }

  /** How many refusals of a client had no line since its last one; undefined: this one has none either. */
  #moreOf(client: string): number | undefined {
    const now = performance.now();
    const seen = this.#seen.get(client);
    if (seen && now < seen.nextAt) {
      seen.more += 1;
      return undefined;
    }
    this.#seen.delete(client);
    this.#seen.set(client, { nextAt: now + quietMs, more: 0 });
    if (this.#seen.size > maxClients) {
      this.#seen.delete(this.#seen.keys().next().value as string);
    }
    return seen?.more ?? 0;
  }

  /** Counts one more line of an address without a known token. */
  #hasManyStrangers(): boolean {
    const now = performance.now();
    if (now >= this.#strangers.until) {
      this.#strangers = { until: now + quietMs, count: 0 };
    }
    this.#strangers.count += 1;
    return this.#strangers.count > maxStrangers;
  }
}
