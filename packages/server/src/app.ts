import { ClientGone } from "./connection.ts";
import { eventRoutes } from "./event-routes.ts";
import { gate } from "./admission.ts";
import { newApp, type App, type House } from "./context.ts";
import { leaseRoutes } from "./lease-routes.ts";
import { lockRoutes } from "./lock-routes.ts";
import type { ResolvedService } from "./options.ts";
import { probeRoutes } from "./probe-routes.ts";
import { problemOf, problemResponse } from "./problems.ts";
import { Refusal } from "./refusal.ts";

/** All routes, behind the gate. */
export function appOf(house: House, { auth }: ResolvedService): App {
  const { log, draining } = house;
  const app = newApp();
  app.onError((error, c) => {
    if (error instanceof ClientGone) {
      return new Response(null, { status: 499 }); // to nobody
    }
    const problem = problemOf(error);
    const { code, status } = problem;
    const told = { method: c.req.method, route: c.req.routePath, status, code, principal: c.var.principal?.name }; // prettier-ignore
    if (status === 500) {
      log({ level: "error", event: "failed", ...told, error: messageOf(error) });
    } else if (code !== "wait-timeout") {
      log({ level: status >= 500 ? "warn" : "debug", event: "refused", ...told, detail: problem.detail });
    }
    const response = problemResponse(problem);
    if (draining.aborted) {
      response.headers.set("connection", "close");
    }
    return response;
  });
  app.notFound(() => problemResponse(problemOf(new Refusal("not-found", "There is no such path"))));
  for (const handler of gate(auth, house.rate)) {
    app.use(handler);
  }
  for (const routes of [leaseRoutes, lockRoutes, eventRoutes, probeRoutes]) {
    app.route("/", routes(house));
  }
  let document: string | undefined;
  app.get("/openapi.json", () => {
    document ??= JSON.stringify(app.getOpenAPI31Document({ openapi: "3.1.0", info }));
    return new Response(document, { headers: { "content-type": "application/json" } });
  });
  return app;
}

const info = {
  title: "Holdfast",
  version: "1",
  description: "Locks for every language. Times are milliseconds, fencing tokens decimal strings.",
};

/** Where it failed, without what it was given. */
function messageOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : typeof error;
}
