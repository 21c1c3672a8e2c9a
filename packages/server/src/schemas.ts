import { z } from "@hono/zod-openapi";
import type { LockErrorCode } from "holdfast";
import type { ServiceCode, WireAcquire, WireHolder, WireLease, WireReleased, WireRenew } from "holdfast/http";

/** The schemas of requests and responses, for validation and for the OpenAPI document. Their types are those of `holdfast/http`. */

export const keySchema: z.ZodString = z
  .string()
  .min(1)
  .max(512)
  .openapi({ example: "order:555", description: "The key of the lock: 1 to 512 bytes of UTF-8" });
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
    description: "Larger than every earlier token of its key: the resource refuses smaller tokens",
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
  .openapi({ example: "billing@host-1:4711", description: "The owner, shown by `inspect` and lists" });
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
    limit: z
      .number()
      .int()
      .optional()
      .openapi({ description: "Of a semaphore: the number of permits in total" }),
    permits: z
      .number()
      .int()
      .optional()
      .openapi({ description: "Of a semaphore: the number of requested permits" }),
    ttlMs: ttlMs.optional(),
    waitMs: z.number().int().min(0).max(86_400_000).optional().openapi({
      description:
        "The longest wait; 0 tries once. The default is 10 000. A response is delayed for `maxWaitMs` of the service at most, a stream for the whole wait",
    }),
    claimMs: z
      .number()
      .int()
      .min(100)
      .optional()
      .openapi({ description: "The TTL of a grant after a wait, until its first renewal" }),
    attemptId: z.string().min(1).max(256).optional().openapi({
      description: "The caller's name for this attempt: a repeat to the same instance gets the same lease",
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
    leaseId: z.string().openapi({ description: "A secret: its bearer controls the lease" }),
    key: keySchema,
    keys: z.array(keySchema),
    fencingToken,
    fencingTokens: z.record(z.string(), fencingToken),
    ttlMs,
    validMs: z.number().openapi({
      description:
        "The certain remaining validity, counted from `queuedMs` after the request was sent. 0: not known, a renewal states it",
    }),
    expiresAt: z.string().openapi({ description: "By the service's clock, for display only" }),
    queuedMs: z.number(),
    guarantee: z.enum(["process", "server", "quorum", "consensus", "database"]),
  })
  .openapi("Lease");

export const releasedSchema: z.ZodType<WireReleased> = z
  .object({ released: z.boolean().openapi({ description: "false: the lease had been lost" }) })
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
    since: z.number().optional().openapi({
      description: "When the engine gave the grant, by its clock, ms since 1970; absent: not known",
    }),
    heldMs: z
      .number()
      .optional()
      .openapi({ description: "How long the grant has lasted, by the engine's clock; absent: not known" }),
    localWaiters: z.number().optional().openapi({
      description: "Callers that wait in the holder's process, as of its last renewal; absent: none",
    }),
    localWaitMs: z.number().optional().openapi({
      description: "How long the oldest of them had waited at that renewal; absent: none, or not known",
    }),
  })
  .openapi("Holder");

/** All codes. The type of the record has one member for each, so that none is missing. */
const codes = Object.keys({
  "wait-timeout": true,
  "lease-lost": true,
  "quorum-not-reached": true,
  "engine-unavailable": true,
  "replicas-not-reached": true,
  "self-deadlock": true,
  "kind-mismatch": true,
  "limit-mismatch": true,
  "too-many-waiters": true,
  "latch-expired": true,
  unsupported: true,
  "invalid-key": true,
  closed: true,
  invalid: true,
  unauthenticated: true,
  forbidden: true,
  "not-found": true,
  "fence-mismatch": true,
  "rate-limited": true,
  draining: true,
} satisfies Record<LockErrorCode | ServiceCode, true>);

export const problemSchema: z.ZodType = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    detail: z.string(),
    code: z.enum(codes),
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

/** Adds undefined to optional properties, as zod's types do. */
type Undefined<T> = { [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name] };
