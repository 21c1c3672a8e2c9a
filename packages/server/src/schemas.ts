import { z } from "@hono/zod-openapi";
import type { WireAcquire, WireHolder, WireLease, WireReleased, WireRenew } from "holdfast/http";

/** What travels, for the checking of requests and for the OpenAPI document; the types are those of `holdfast/http`. */

export const keySchema: z.ZodString = z
  .string()
  .min(1)
  .max(512)
  .openapi({ example: "order:555", description: "What is locked: 1 to 512 bytes of UTF-8" });
const ttlMs = z
  .number()
  .int()
  .min(100)
  .max(86_400_000)
  .openapi({ example: 30_000, description: "How long the engine keeps the grant without renewal" });
export const fencingToken: z.ZodString = z
  .string()
  .regex(/^\d{1,39}$/)
  .openapi({
    example: "1795298798123456",
    description: "Larger than every earlier one of its key: the resource refuses smaller ones",
  });
const owner = z
  .union([
    z.string().min(1).max(512),
    z.strictObject({
      name: z.string().min(1).max(200),
      host: z.string().min(1).max(200).optional(),
      pid: z.number().int().min(0).optional(),
    }),
  ])
  .openapi({ example: "billing@host-1:4711", description: "Who asks; told to whoever looks" });
const holderInfo = {
  owner: owner.optional(),
  reason: z.string().min(1).max(1024).optional(),
  labels: z.record(z.string(), z.string()).optional(),
};

export const acquireSchema: z.ZodType<WireAcquire> = z
  .strictObject({
    key: keySchema.optional(),
    keys: z
      .array(keySchema)
      .min(1)
      .max(32)
      .optional()
      .openapi({ description: "Instead of `key`: every one of them or none" }),
    mode: z.enum(["exclusive", "read", "write", "semaphore"]).optional(),
    limit: z.number().int().optional().openapi({ description: "Of a semaphore: how many permits there are" }),
    permits: z.number().int().optional().openapi({ description: "Of a semaphore: how many are wanted" }),
    ttlMs: ttlMs.optional(),
    waitMs: z.number().int().min(0).max(86_400_000).optional().openapi({
      description:
        "0, the default: ask once. An answer is held back for `maxWaitMs` of the service at the most, a stream as long as is asked",
    }),
    claimMs: z
      .number()
      .int()
      .min(100)
      .optional()
      .openapi({ description: "A grant that comes after a wait is for this long only, until it is renewed" }),
    attemptId: z.string().min(1).max(256).optional().openapi({
      description:
        "The caller's own name for the attempt: repeated with it to the same instance, it has the same lease",
    }),
    ...holderInfo,
  })
  .openapi("Acquire");

export const renewSchema: z.ZodType<WireRenew> = z
  .strictObject({ ttlMs: ttlMs.optional(), ...holderInfo })
  .openapi("Renew");

interface RenewMany {
  readonly leases: readonly { readonly leaseId: string; readonly ttlMs?: number | undefined }[];
}

export const renewManySchema: z.ZodType<RenewMany> = z
  .strictObject({
    leases: z
      .array(z.strictObject({ leaseId: z.string(), ttlMs: ttlMs.optional() }))
      .min(1)
      .max(1000),
  })
  .openapi("RenewMany");

export const leaseSchema: z.ZodType<WireLease> = z
  .object({
    leaseId: z.string().openapi({ description: "A secret: who has it, has the lease" }),
    key: keySchema,
    keys: z.array(keySchema),
    fencingToken,
    fencingTokens: z.record(z.string(), fencingToken),
    ttlMs,
    validMs: z.number().openapi({
      description: "What is left for certain, counted from `queuedMs` after the question was sent",
    }),
    expiresAt: z.string().openapi({ description: "By the service's clock, for people" }),
    queuedMs: z.number(),
    guarantee: z.enum(["process", "server", "quorum", "consensus", "database"]),
  })
  .openapi("Lease");

export const releasedSchema: z.ZodType<WireReleased> = z
  .object({ released: z.boolean().openapi({ description: "false: it had been lost" }) })
  .openapi("Released");

export const holderSchema: z.ZodType<Undefined<WireHolder>> = z
  .object({
    owner: z.string(),
    reason: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    fencingToken: fencingToken.optional(),
    mode: z.enum(["read", "write"]).optional(),
    permits: z.number().optional(),
    remainingMs: z.number().optional(),
    localWaiters: z.number().optional().openapi({
      description:
        "Callers that wait in memory in the holder's process, as of its last renewal; absent: none",
    }),
  })
  .openapi("Holder");

export const problemSchema: z.ZodType = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    detail: z.string(),
    code: z.string(),
    key: z.string().optional(),
    retryable: z.boolean(),
    outcome: z.enum(["none", "unknown"]),
    retryAfterMs: z.number().optional(),
    holder: holderSchema.optional(),
    position: z.number().optional(),
    reason: z.string().optional(),
    lostAt: z.number().optional(),
    votes: z.array(z.object({})).optional(),
    fencingToken: fencingToken.nullable().optional(),
  })
  .openapi("Problem");

export const leaseIdParam: z.ZodObject<{ leaseId: z.ZodString }> = z.object({
  leaseId: z
    .string()
    .min(1)
    .openapi({ param: { name: "leaseId", in: "path" } }),
});

/** What zod makes of optional properties. */
type Undefined<T> = { [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name] };
