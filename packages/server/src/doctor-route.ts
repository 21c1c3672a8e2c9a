import { createRoute, z } from "@hono/zod-openapi";
import { EngineError } from "holdfast";

import { json, noQuery, problems } from "./responses.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import type { Diagnosis } from "./doctor/finding.ts";
import { hasScope } from "./principal.ts";
import { ServiceError } from "./refusal.ts";

/** How long one diagnosis serves all requests, ms, because the checks send commands to every server. */
const freshMs = 10_000;

const findingSchema = z
  .object({
    level: z.enum(["critical", "risk", "perf", "info"]),
    id: z.string(),
    node: z.string(),
    observed: z.string(),
    impact: z.string().openapi({ description: "The effect on locks" }),
    fix: z.string().openapi({ description: "The fix, in words" }),
    command: z.string().optional().openapi({ description: "The fix, as a command" }),
  })
  .openapi("Finding");

/** The checks of `holdfast doctor`. */
export function doctorRoute({ doctor, draining }: ServiceContext): App {
  const app = newApp();
  let running: Promise<Diagnosis> | undefined;
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/doctor",
      operationId: "diagnose",
      tags: ["operation"],
      summary: "The risks of the engine's servers to locks. 404: the service was not started by `holdfast`",
      request: { query: noQuery },
      responses: {
        200: json(
          z.object({ topology: z.string(), nodes: z.array(z.string()), findings: z.array(findingSchema) }),
          "The findings, the worst first",
        ),
        ...problems,
      },
    }),
    async (c) => {
      if (!hasScope(c.var.principal, "admin", "")) {
        throw new ServiceError("forbidden", "Expected the scope admin");
      }
      if (!doctor) {
        throw new ServiceError("not-found", "This service has no doctor: start it by `holdfast serve`");
      }
      running ??= doctor(draining)
        .catch((error: unknown) => {
          const message = `The checks failed: ${error instanceof Error ? error.message : String(error)}`;
          throw new EngineError(message, { outcome: "none", retryable: true, cause: error });
        })
        .finally(() => {
          setTimeout(() => (running = undefined), freshMs).unref();
        });
      const { topology, nodes, findings } = await running;
      return c.json({ topology, nodes: [...nodes], findings: [...findings] }, 200);
    },
  );
  return app;
}
