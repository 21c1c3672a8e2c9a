import type { MiddlewareHandler } from "hono";

import type { RouteEnv } from "./context.ts";

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers": "authorization, content-type",
  "access-control-max-age": "7200",
};

/**
 * Lets web pages of these origins read the responses (CORS). The headers are set on the connection, because an event stream has no
 * `Response`.
 * @param origins as in the header `Origin`; `*`: every origin
 */
export function allowOrigins(origins: readonly string[]): MiddlewareHandler<RouteEnv> {
  const allowed = new Set(origins);
  return async (c, next) => {
    const origin = c.req.header("origin");
    const isAllowed = origin !== undefined && (allowed.has(origin) || allowed.has("*"));
    const { outgoing } = c.env;
    outgoing.setHeader("vary", "origin");
    if (isAllowed) {
      outgoing.setHeader("access-control-allow-origin", origin);
    }
    if (c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined) {
      return new Response(null, { status: 204, headers: isAllowed ? preflightHeaders : {} });
    }
    return next();
  };
}
