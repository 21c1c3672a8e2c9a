import { createRoute, z } from "@hono/zod-openapi";

import { EngineError } from "holdfast";

import { json, problems } from "./answers.ts";
import { newApp, type App, type House } from "./house.ts";
import { mayDo } from "./principal.ts";
import { Refusal } from "./refusal.ts";

const health = z.object({ status: z.string() });

/** For those who keep the service running. */
export function probeRoutes({ engine, draining, meter }: House): App {
  const app = newApp();

  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      summary: "Whether the process answers",
      responses: { 200: json(health, "It does") },
    }),
    (c) => c.json({ status: "ok" }, 200),
  );

  app.openapi(
    createRoute({
      method: "get",
      path: "/readyz",
      summary:
        "Whether it takes requests: its engine can be reached, and grants locks, and it is not about to end",
      responses: { 200: json(health, "It does"), ...problems },
    }),
    async (c) => {
      if (draining.aborted) {
        throw draining.reason as Error;
      }
      const nodes = await engine.locks.nodes();
      const usable = nodes.filter(({ reachable, quarantine }) => reachable && quarantine === null).length;
      if (usable <= nodes.length / 2) {
        const message = `${usable} of ${nodes.length} servers can be reached, and may grant locks`;
        throw new EngineError(message, { outcome: "none", retryable: true });
      }
      return c.json({ status: "ready" }, 200);
    },
  );

  app.openapi(
    createRoute({
      method: "get",
      path: "/metrics",
      summary: "For Prometheus",
      responses: {
        200: { description: "Metrics", content: { "text/plain": { schema: z.string() } } },
        ...problems,
      },
    }),
    async (c) => {
      if (!mayDo(c.var.principal, "admin", "")) {
        throw new Refusal("forbidden", "It takes admin");
      }
      return c.text(await meter.registry.metrics(), 200, { "content-type": meter.registry.contentType });
    },
  );

  return app;
}
