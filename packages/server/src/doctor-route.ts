import { createRoute, z } from "@hono/zod-openapi";
import { EngineError } from "holdfast";

import { json, noQuery, problems } from "./responses.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { BoundedDoctor } from "./doctor/bounded.ts";
import { levels, sortFindings } from "./doctor/finding.ts";
import { hasScope } from "./principal.ts";
import { ServiceError } from "./refusal.ts";

const findingSchema = z
  .object({
    level: z.enum(levels),
    id: z.string(),
    node: z.string(),
    observed: z.string(),
    impact: z.string().openapi({ description: "The effect on locks" }),
    fix: z.string().openapi({ description: "The fix, in words" }),
    command: z.string().optional().openapi({ description: "The fix, as a command" }),
  })
  .openapi("Finding");

/** The checks of `holdfast doctor`. */
export function doctorRoute({ doctor, draining, warnings }: ServiceContext): App {
  const app = newApp();
  const bounded = new BoundedDoctor(() => doctor(draining));
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/doctor",
      operationId: "diagnose",
      tags: ["operation"],
      summary: "The risks of the engine's servers to locks. One run serves all requests of 5 s",
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
      const { topology, nodes, findings } = await bounded.diagnose().catch((error: unknown) => {
        const message = `The checks failed: ${error instanceof Error ? error.message : String(error)}`;
        throw new EngineError(message, { outcome: "none", retryable: true, cause: error });
      });
      return c.json(
        { topology, nodes: [...nodes], findings: sortFindings([...findings, ...warnings()]) },
        200,
      );
    },
  );
  return app;
}
