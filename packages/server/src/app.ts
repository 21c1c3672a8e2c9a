import { AllowedMethods } from "./allowed-methods.ts";
import { ClientDisconnected } from "./connection.ts";
import { allowOrigins } from "./cors.ts";
import { eventRoutes } from "./event-routes.ts";
import { auditRoutes } from "./audit-routes.ts";
import { breakRoutes } from "./break-routes.ts";
import { authenticateAndLimit, type Identify } from "./admission.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { doctorRoute } from "./doctor-route.ts";
import { meRoute } from "./me-route.ts";
import { leaseRoutes } from "./lease-routes.ts";
import { lockRoutes } from "./lock-routes.ts";
import { observationRoutes } from "./observation-routes.ts";
import { openApiDocument, registerSecurity } from "./openapi.ts";
import type { ResolvedService } from "./options.ts";
import { probeRoutes } from "./probe-routes.ts";
import { problemOf, problemResponse } from "./problems.ts";
import { refuseChanges } from "./read-only.ts";
import { measureRequests } from "./request-durations.ts";
import { ServiceError } from "./refusal.ts";
import { consolePages } from "./web-console/pages.ts";

const allRoutes = [
  leaseRoutes,
  lockRoutes,
  breakRoutes,
  auditRoutes,
  eventRoutes,
  observationRoutes,
  probeRoutes,
  meRoute,
  doctorRoute,
];

/** All routes, after authentication and limits. */
export function createApp(
  context: ServiceContext,
  { console: hasConsole, readOnly, allowedOrigins }: ResolvedService,
  identify: Identify,
): App {
  const { log, draining, refusals } = context;
  const app = newApp();
  let methods: AllowedMethods | undefined;
  app.onError((error, c) => {
    if (error instanceof ClientDisconnected) {
      return new Response(null, { status: 499 }); // the client has disconnected
    }
    const problem = problemOf(error);
    const { code, status } = problem;
    const reported = { method: c.req.method, route: c.req.routePath, status, code, principal: c.var.principal?.name }; // prettier-ignore
    if (status === 500) {
      log({ level: "error", event: "failed", ...reported, error: messageOf(error) });
    } else if (!refusals.report(c, problem) && code !== "wait-timeout") {
      log({ level: status >= 500 ? "warn" : "debug", event: "refused", ...reported, detail: problem.detail });
    }
    const response = problemResponse(problem);
    if (draining.aborted) {
      response.headers.set("connection", "close");
    }
    return response;
  });
  app.notFound((c) => {
    methods ??= new AllowedMethods(app);
    return noRoute(c.req.method, methods.of(c.req.path));
  });
  app.use(measureRequests(context.metrics.registry));
  registerSecurity(app);
  if (allowedOrigins.length > 0) {
    app.use(allowOrigins(allowedOrigins)); // before authentication, because a preflight has no credentials
  }
  for (const handler of authenticateAndLimit(identify, context.rate)) {
    app.use(handler);
  }
  if (readOnly) {
    app.use(refuseChanges);
  }
  for (const routes of allRoutes) {
    app.route("/", routes(context));
  }
  if (hasConsole) {
    app.route("/", consolePages());
  }
  let document: string | undefined;
  app.get("/openapi.json", () => {
    document ??= JSON.stringify(openApiDocument(app));
    return new Response(document, { headers: { "content-type": "application/json" } });
  });
  return app;
}

function noRoute(method: string, allowed: readonly string[]): Response {
  if (allowed.length === 0) {
    return problemResponse(problemOf(new ServiceError("not-found", "There is no such path")));
  }
  const refusal = new ServiceError(
    "invalid",
    `Expected the method ${allowed.join(" or ")}, got ${method}`,
    {},
    405,
  );
  const response = problemResponse(problemOf(refusal));
  response.headers.set("allow", allowed.join(", "));
  return response;
}

/** The place of a failure, without the values of the request. */
function messageOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : typeof error;
}
