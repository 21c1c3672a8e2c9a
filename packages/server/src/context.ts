import type { HttpBindings } from "@hono/node-server";
import { OpenAPIHono } from "@hono/zod-openapi";

import type { Attempts } from "./attempts.ts";
import type { Connections } from "./connection.ts";
import type { Engine } from "./engine.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { RateLimit } from "./limits.ts";
import type { Log } from "./log.ts";
import type { Meter } from "./meter.ts";
import type { Principal } from "./principal.ts";
import { Refusal } from "./refusal.ts";
import type { Bound, Waits } from "./waits.ts";

/** What the routes know of a request beside its own words. */
export interface Env {
  Bindings: HttpBindings;
  Variables: { principal: Principal };
}

/** What the routes share. */
export interface House {
  readonly engine: Engine;
  readonly leases: Leases;
  readonly leaseIds: LeaseIds;
  /** Undefined: requests have no bound. */
  readonly rate: RateLimit | undefined;
  readonly attempts: Attempts;
  readonly waits: Waits;
  /** The open streams of events: behind each the engine is asked, again and again. */
  readonly streams: Bound;
  readonly meter: Meter;
  readonly log: Log;
  readonly connections: Connections;
  /** Aborted, with what is then answered, when the service is about to end. */
  readonly draining: AbortSignal;
  /** The longest that an answer is held back. */
  readonly maxWaitMs: number;
}

export type App = OpenAPIHono<Env>;

/** Routes whose requests are checked: what does not fit is `invalid`, and says where. */
export function newApp(): App {
  return new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) {
        const { path, message } = result.error.issues[0] ?? { path: [], message: "it does not fit" };
        throw new Refusal("invalid", path.length > 0 ? `${path.join(".")}: ${message}` : message);
      }
    },
  });
}
