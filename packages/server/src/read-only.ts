import type { MiddlewareHandler } from "hono";

import type { RouteEnv } from "./context.ts";
import { ServiceError } from "./refusal.ts";

const readingMethods = new Set(["GET", "HEAD", "OPTIONS"]);

/** Refuses each request that may change a lock. A check of a fencing token only reads. */
export const refuseChanges: MiddlewareHandler<RouteEnv> = (c, next) => {
  if (!readingMethods.has(c.req.method) && c.req.path !== "/v1/fence/check") {
    throw new ServiceError("forbidden", "The service is read-only");
  }
  return next();
};
