import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import { Histogram, type Registry } from "prom-client";

import type { RouteEnv } from "./context.ts";
import { problemOf } from "./problems.ts";

/** The bounds that OpenTelemetry advises, and further ones for fast replies and for long waits. */
const buckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60,
];

/** The methods that OpenTelemetry knows. Any other is `_OTHER`, because a client can invent methods. */
const methods: ReadonlySet<string> = new Set(
  "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split(" "),
);

const labelNames = [
  "http_request_method",
  "http_route",
  "http_response_status_code",
  "url_scheme",
  "error_type",
];

/**
 * Measures each request until its response is complete, as `http.server.request.duration` of OpenTelemetry's semantic conventions. The
 * wait for a lock, and the life of an event stream, are part of their requests.
 */
export function measureRequests(registry: Registry): MiddlewareHandler<RouteEnv> {
  const histogram = new Histogram({
    name: "http_server_request_duration_seconds",
    help: "Duration of HTTP requests",
    labelNames,
    buckets,
    registers: [registry],
  });
  const routes = new Map<string, string>();
  return async (c, next) => {
    const startedAt = performance.now();
    await next();
    const { status } = c.res;
    histogram.observe(
      {
        http_request_method: methods.has(c.req.method) ? c.req.method : "_OTHER",
        http_response_status_code: status,
        url_scheme: c.req.url.startsWith("https:") ? "https" : "http",
        ...routeLabel(c, routes),
        ...(status >= 500 && { error_type: c.error ? problemOf(c.error).code : "other" }),
      },
      (performance.now() - startedAt) / 1000,
    );
  };
}

/** The template of the route, such as `/v1/leases/{leaseId}`. A path without a route has no label. */
function routeLabel(c: Context, routes: Map<string, string>): { http_route?: string } {
  const path = matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path;
  if (path === undefined) {
    return {};
  }
  let template = routes.get(path);
  if (template === undefined) {
    template = path.replaceAll(/:(\w+)/g, "{$1}");
    routes.set(path, template);
  }
  return { http_route: template };
}
