import type { HttpBindings } from "@hono/node-server";
import { OpenAPIHono } from "@hono/zod-openapi";

import type { AttemptCache } from "./attempts.ts";
import type { Connections } from "./connection.ts";
import type { Engine } from "./engine.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { RateLimit } from "./limits.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./meter.ts";
import type { Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import type { PrincipalLimit, WaitLimits } from "./waits.ts";

/** What the routes know of a request beside its own words. */
export interface RouteEnv {
  Bindings: HttpBindings;
  Variables: { principal: Principal };
}

/** What the routes share. */
export interface ServiceContext {
  readonly engine: Engine;
  readonly leases: Leases;
  readonly leaseIds: LeaseIds;
  /** Undefined: requests have no bound. */
  readonly rate: RateLimit | undefined;
  readonly attempts: AttemptCache;
  readonly waitLimits: WaitLimits;
  /** The open streams of events: behind each the engine is asked, again and again. */
  readonly streams: PrincipalLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly connections: Connections;
  /** Aborted, with what is then answered, when the service is about to end. */
  readonly draining: AbortSignal;
  /** The longest that an answer is held back. */
  readonly maxWaitMs: number;
}

export type App = OpenAPIHono<RouteEnv>;

/** Routes whose requests are checked: what does not fit is `invalid`, and says where. */
export function newApp(): App {
  return new OpenAPIHono<RouteEnv>({
    defaultHook: (result) => {
      if (!result.success) {
        const { path, message } = result.error.issues[0] ?? { path: [], message: "it does not fit" };
        throw new ServiceError("invalid", path.length > 0 ? `${path.join(".")}: ${message}` : message);
      }
    },
  });
}
