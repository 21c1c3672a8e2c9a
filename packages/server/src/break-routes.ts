import { createRoute, z } from "@hono/zod-openapi";
import type { BreakResult, Locks } from "holdfast";
import type { Context } from "hono";

import { newApp, type App, type RouteEnv, type ServiceContext } from "./context.ts";
import { anonymous, authorize, hasScope, prefixesOf, type Principal } from "./principal.ts";
import { problemOf } from "./problems.ts";
import { ServiceError } from "./refusal.ts";
import { body, json, noQuery, problems } from "./responses.ts";
import { fencingToken, keySchema } from "./schemas.ts";

type SeenGrant = Pick<BreakResult, "key" | "fencingToken">;

/** At most this many grants are broken by one request. */
const maxGrants = 10_000;

const auditId = z.string().optional().openapi({
  description: "The id of the record in the audit. Absent: nothing was broken, or the engine keeps no audit",
});
const reasonSchema = z.string().min(1).max(1024);
const grantSchema = z.strictObject({ key: keySchema, fencingToken });
const by = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .openapi({ description: "The operator's name in the audit, after the name of the principal" });
const breakOwnerSchema = z.strictObject({
  owner: z.string().min(1).max(512),
  reason: reasonSchema,
  by,
  locks: z.array(grantSchema).max(maxGrants).optional(),
});
const resultSchema = z
  .object({
    key: keySchema,
    fencingToken,
    broken: z
      .union([z.boolean(), z.literal("unknown")])
      .openapi({ description: "false: the grant had ended, or `code` has the refusal" }),
    auditId,
    code: z.string().optional().openapi({ description: "The code of the problem, for example `forbidden`" }),
  })
  .openapi("BreakResult");

/** Ends grants by force. Each break is one line of the audit log. */
export function breakRoutes(context: ServiceContext): App {
  const app = newApp();
  breakRoute(app, context);
  breakOwnerRoute(app, context);
  return app;
}

function breakRoute(app: App, { engine: { locks }, metrics, log }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/lock/break",
      operationId: "breakLock",
      tags: ["locks"],
      summary: "Break a grant, named by its fencing token. The holder is notified, but not stopped",
      request: {
        query: noQuery,
        body: body(grantSchema.extend({ reason: reasonSchema, by })),
      },
      responses: {
        200: json(z.object({ broken: z.literal(true), auditId }), "The grant has ended"),
        ...problems,
      },
    }),
    async (c) => {
      const { key, fencingToken: seen, reason, by: name } = c.req.valid("json");
      authorize(c.var.principal, "lock:force", [key]);
      const holders = (await locks.inspect(key)).holders;
      const holder = holders.find((one) => one.fencingToken?.toString() === seen)?.owner;
      const report = (broken: boolean | "unknown"): void =>
        record(c, log, { key, fencingToken: seen, holder, reason, broken });
      let result: BreakResult | undefined;
      const isBroken = await locks.admin
        .breakLock(key, {
          fencingToken: BigInt(seen),
          reason,
          by: operatorName(c.var.principal, name),
          onResult: (known) => (result = known),
        })
        .catch((error: unknown) => {
          report("unknown"); // the engine may have executed it
          throw error;
        });
      report(isBroken);
      if (!isBroken) {
        const present = holders[0]?.fencingToken?.toString() ?? null;
        throw new ServiceError("fence-mismatch", `No grant of "${key}" has the fencing token ${seen}`, {
          key,
          fencingToken: present,
        });
      }
      metrics.broken(key);
      return c.json({ broken: true as const, ...auditIdOf(result) }, 200);
    },
  );
}

function breakOwnerRoute(app: App, { engine: { locks }, metrics, log, connections }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/owners/break",
      operationId: "breakOwner",
      tags: ["locks"],
      summary:
        "Break all grants of one owner, or the given ones that it still holds. The owner is notified, but not stopped",
      request: {
        query: noQuery,
        body: body(breakOwnerSchema),
      },
      responses: {
        200: json(
          z.object({
            results: z.array(resultSchema),
            complete: z
              .boolean()
              .openapi({ description: `false: the owner holds more than ${maxGrants} locks` }),
          }),
          "The result of each grant that the principal may read or break",
        ),
        ...problems,
      },
    }),
    async (c) => {
      const { owner, reason, by: name, locks: named } = c.req.valid("json");
      const { principal } = c.var;
      const mayBreak = ({ key }: SeenGrant): boolean => hasScope(principal, "lock:force", key);
      if (!principal.grants.some(({ scope }) => scope === "lock:force")) {
        authorize(principal, "lock:force", [named?.[0]?.key ?? ""]);
      }
      const signal = connections.open(c).closed;
      const seen = named
        ? named.map(seenGrant)
        : await grantsOf(locks, owner, prefixesOf(principal, ["lock:force", "lock:read"]), signal);
      const grants = seen.filter(mayBreak).slice(0, maxGrants);
      const { results } = await locks.admin.breakOwner(owner, {
        reason,
        by: operatorName(principal, name),
        grants,
        signal,
        onResult: ({ key, fencingToken: token, broken }) => {
          record(c, log, { key, fencingToken: token.toString(), holder: owner, reason, broken });
          if (broken === true) {
            metrics.broken(key);
          }
        },
      });
      const forbidden = seen.filter(
        (grant) => !mayBreak(grant) && (named !== undefined || hasScope(principal, "lock:read", grant.key)),
      );
      const shown = [...results.map(wireResult), ...forbidden.map(refused)];
      return c.json({ results: shown, complete: seen.length <= maxGrants }, 200);
    },
  );
}

/** The name of the principal, and the name that the request adds. Without authentication only the latter is known. */
function operatorName(principal: Principal, name: string | undefined): string {
  if (principal === anonymous) {
    return name ?? anonymous.name;
  }
  return name === undefined ? principal.name : `${principal.name}/${name}`;
}

interface BreakRecord {
  readonly key: string;
  readonly fencingToken: string;
  readonly holder: string | undefined;
  readonly reason: string;
  readonly broken: boolean | "unknown";
}

function record(c: Context<RouteEnv>, log: ServiceContext["log"], entry: BreakRecord): void {
  const remote = c.env.incoming.socket.remoteAddress;
  log({ level: "audit", event: "break", principal: c.var.principal.name, remote, ...entry });
}

/** The grants of the owner that a search of the locks with these prefixes shows. */
async function grantsOf(
  locks: Locks,
  owner: string,
  prefixes: readonly string[],
  signal: AbortSignal,
): Promise<SeenGrant[]> {
  const found = new Map<string, SeenGrant>();
  for (const prefix of prefixes) {
    let cursor: string | undefined;
    do {
      const page = await locks.admin.list({ prefix, cursor, limit: 1_000, signal });
      for (const { key, holders } of page.locks) {
        for (const holder of holders) {
          if (holder.owner === owner && holder.fencingToken !== undefined) {
            found.set(`${holder.fencingToken} ${key}`, { key, fencingToken: holder.fencingToken });
          }
        }
      }
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && found.size <= maxGrants);
  }
  return [...found.values()];
}

function seenGrant({ key, fencingToken: token }: z.infer<typeof grantSchema>): SeenGrant {
  return { key, fencingToken: BigInt(token) };
}

function wireResult(result: BreakResult): z.infer<typeof resultSchema> {
  const { key, fencingToken: token, broken, error } = result;
  const code = error === undefined ? undefined : problemOf(error).code;
  const more = { ...auditIdOf(result), ...(code !== undefined && { code }) };
  return { key, fencingToken: token.toString(), broken, ...more };
}

function auditIdOf(result: BreakResult | undefined): { auditId?: string } {
  return result?.auditId === undefined ? {} : { auditId: result.auditId };
}

function refused({ key, fencingToken: token }: SeenGrant): z.infer<typeof resultSchema> {
  return { key, fencingToken: token.toString(), broken: false, code: "forbidden" };
}
