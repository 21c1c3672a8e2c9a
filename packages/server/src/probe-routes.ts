import { createRoute, z } from "@hono/zod-openapi";

import { EngineError } from "holdfast";

import { json, problems } from "./responses.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { hasScope } from "./principal.ts";
import { ServiceError } from "./refusal.ts";

const health = z.object({ status: z.string() });

/** How long one reply of the engine serves all readiness probes, ms. Unauthenticated clients may send probes. */
const readinessMs = 250;

/** The routes for orchestration and monitoring. */
export function probeRoutes({ engine, draining, metrics }: ServiceContext): App {
  const app = newApp();
  const nodes = cachedFor(readinessMs, () => engine.locks.admin.nodes());

  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      security: [],
      operationId: "getHealth",
      tags: ["operation"],
      summary: "Liveness: the process responds",
      responses: { 200: json(health, "It does"), ...problems },
    }),
    (c) => c.json({ status: "ok" }, 200),
  );

  app.openapi(
    createRoute({
      method: "get",
      path: "/readyz",
      security: [],
      operationId: "getReadiness",
      tags: ["operation"],
      summary: "Readiness: the engine is reachable and grants locks, and the service does not drain",
      responses: { 200: json(health, "It does"), ...problems },
    }),
    async (c) => {
      if (draining.aborted) {
        throw draining.reason as Error;
      }
      const states = await nodes();
      const usable = states.filter(({ reachable, quarantine }) => reachable && quarantine === null).length;
      if (usable <= states.length / 2) {
        const message = `${usable} of ${states.length} servers can be reached, and may grant locks`;
        throw new EngineError(message, { outcome: "none", retryable: true });
      }
      return c.json({ status: "ready" }, 200);
    },
  );

  app.openapi(
    createRoute({
      method: "get",
      path: "/metrics",
      operationId: "getMetrics",
      tags: ["operation"],
      summary: "For Prometheus",
      responses: {
        200: { description: "Metrics", content: { "text/plain": { schema: z.string() } } },
        ...problems,
      },
    }),
    async (c) => {
      if (!hasScope(c.var.principal, "admin", "")) {
        throw new ServiceError("forbidden", "Expected the scope admin");
      }
      return c.text(await metrics.registry.metrics(), 200, { "content-type": metrics.registry.contentType });
    },
  );

  return app;
}

/** Sends one request at a time. Its reply also serves all callers of the next `ms`. */
function cachedFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= ask().finally(() => {
      setTimeout(() => (answer = undefined), ms).unref();
    });
    return answer;
  };
}
