import { createRoute, z } from "@hono/zod-openapi";
import type { WireAudit } from "holdfast/http";

import { newApp, type App, type ServiceContext } from "./context.ts";
import { authorize, hasScope } from "./principal.ts";
import { json, problems } from "./responses.ts";
import { fencingToken, keySchema } from "./schemas.ts";

const recordSchema = z
  .object({
    id: z.string().openapi({ description: "A decimal number, larger than those of earlier records" }),
    at: z.number().openapi({ description: "The time of the break by the engine's clock, ms since 1970" }),
    principal: z.string().openapi({ description: "The operator" }),
    action: z.literal("break"),
    key: keySchema,
    fencingToken,
    owner: z.string().optional().openapi({ description: "The owner of the grant, as seen before the break" }),
    reason: z.string(),
    result: z.literal("broken"),
  })
  .openapi("AuditRecord");

/** The records of breaks, which the engine keeps. */
export function auditRoutes({ engine: { locks } }: ServiceContext): App {
  const app = newApp();
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/audit",
      operationId: "listAudit",
      tags: ["locks"],
      summary:
        "The last breaks, newest first. The engine keeps 1 000 records. The last page has `cursor` null",
      request: {
        query: z.strictObject({
          key: keySchema.optional(),
          id: z
            .string()
            .max(30)
            .optional()
            .openapi({ description: "Only the record with this id, as `auditId` names it" }),
          limit: z.coerce.number().int().min(1).max(1000).optional(),
          cursor: z.string().max(30).optional(),
        }),
      },
      responses: {
        200: json(z.object({ records: z.array(recordSchema), cursor: z.string().nullable() }), "A page"),
        ...problems,
      },
    }),
    async (c) => {
      const query = c.req.valid("query");
      const { principal } = c.var;
      const isAdmin = hasScope(principal, "admin", "");
      if (!isAdmin) {
        authorize(principal, "lock:read", [query.key ?? ""]);
      }
      const { records, cursor } = await locks.admin.audit(query);
      const page: WireAudit = {
        records: records
          .filter(({ key }) => isAdmin || hasScope(principal, "lock:read", key)) // a second line
          .map(({ by, fencingToken: token, ...record }) => ({
            ...record,
            principal: by,
            fencingToken: token.toString(),
          })),
        cursor,
      };
      return c.json(page, 200);
    },
  );
  return app;
}
