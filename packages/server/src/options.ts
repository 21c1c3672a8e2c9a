import { z } from "zod";
import type { Driver } from "holdfast";

import type { AuthOptions } from "./auth.ts";
import type { Diagnosis } from "./doctor/finding.ts";
import type { Log } from "./log.ts";

export interface ServiceOptions {
  /** A URL for `holdfast/connect`, or a driver, which the service closes. @defaultValue "memory:" */
  readonly engine?: string | Driver | undefined;
  /** Authentication. Without this option, every client on this machine has access, and no other machine has. */
  readonly auth?: AuthOptions | undefined;
  /** The longest wait for one response, ms. A stream waits for the request's `waitMs`. @defaultValue 60 000 */
  readonly maxWaitMs?: number | undefined;
  /**
   * The limit of requests per second and principal. Renewals and releases count only in vain, and apart: of an ended or unknown lease, or
   * sooner than a tenth of the TTL (0.5 s to 5 s, at most a fifth of the TTL) after the last renewal.
   * @defaultValue no limit
   */
  readonly requestsPerSecond?: number | undefined;
  /** The signing key of lease ids, the same for every instance, at least 16 characters. @defaultValue lease ids are unsigned */
  readonly leaseKey?: string | undefined;
  /**
   * Another signing key whose lease ids are valid, at least 16 characters: the former key during a change, or the next one at instances
   * that are not yet to use it. @defaultValue none
   */
  readonly oldLeaseKey?: string | undefined;
  /** The limit of open waits of one principal at this instance. @defaultValue 20 000 on Redis and in memory, 1 000 on other engines */
  readonly maxWaitsOfOne?: number | undefined;
  /** The limit of open waits of one principal for one key at this instance. Without authentication there is none. @defaultValue 500 */
  readonly maxWaitsOfKey?: number | undefined;
  /** The limit of keys that one principal holds by this instance. Without authentication there is none. @defaultValue 1 000 */
  readonly maxLeasesOfOne?: number | undefined;
  /** The limit of open event streams of one principal at this instance. @defaultValue 200 */
  readonly maxStreamsOfOne?: number | undefined;
  /** @defaultValue 50 000 */
  readonly maxConnections?: number | undefined;
  /** How long `drain` waits for open requests, ms. @defaultValue 10 000 */
  readonly drainMs?: number | undefined;
  /** Key prefixes that are groups of the metrics. Other keys belong to the group of the part before their first `:`. */
  readonly groups?: readonly string[] | undefined;
  /** Serves the web console at `/console`. @defaultValue true */
  readonly console?: boolean | undefined;
  /** Refuses every request that changes a lock, also for principals with its scope. @defaultValue false */
  readonly readOnly?: boolean | undefined;
  /**
   * The origins of web pages that may use the service, as in `https://shop.example`; `*`: every origin, with authentication only.
   * @defaultValue none
   */
  readonly allowedOrigins?: readonly string[] | undefined;
  /**
   * The checks of the engine for `/v1/doctor` and the console.
   * @defaultValue with a URL those of `holdfast doctor`, without a probe; with a driver those of its `nodes()`
   */
  readonly doctor?: ((signal: AbortSignal) => Promise<Diagnosis>) | undefined;
  /** @defaultValue no log */
  readonly log?: Log | undefined;
}

/** Options without a default. */
type Optional =
  "engine" | "auth" | "requestsPerSecond" | "leaseKey" | "oldLeaseKey" | "maxWaitsOfOne" | "doctor";

/** The options with their defaults. */
export type ResolvedService = Pick<ServiceOptions, Optional> & {
  readonly [Name in Exclude<keyof ServiceOptions, Optional>]-?: NonNullable<ServiceOptions[Name]>;
};

const grants = z.array(
  z.discriminatedUnion(
    "scope",
    [
      z.strictObject({ scope: z.enum(["lock:acquire", "lock:read", "lock:force"]), prefix: z.string() }),
      z.strictObject({
        scope: z.literal("admin"),
        prefix: z
          .literal("", { error: "expected no prefix, because admin is a scope of all keys" })
          .default(""),
      }),
    ],
    { error: "expected the scope lock:acquire, lock:read, lock:force or admin" },
  ),
);

const authSchema: z.ZodType<AuthOptions> = z
  .strictObject({
    tokens: z
      .array(z.strictObject({ name: z.string().min(1).max(128), sha256: z.hex().length(64), grants }))
      .optional(),
    jwt: z
      .array(
        z.strictObject({
          issuer: z.string().min(1),
          audience: z.string().min(1),
          jwksUrl: z.url(),
          rules: z.array(z.strictObject({ subject: z.string().min(1), grants })),
        }),
      )
      .optional(),
  })
  .refine(
    ({ tokens = [], jwt = [] }) => tokens.length + jwt.length > 0,
    "expected at least one token or JWT issuer",
  )
  .refine(
    ({ tokens = [] }) => new Set(tokens.map(({ sha256 }) => sha256.toLowerCase())).size === tokens.length,
    "expected a different sha256 for each token",
  );

const origin = z
  .string()
  .refine((text) => text === "*" || (URL.canParse(text) && new URL(text).origin === text), {
    error: "expected an origin such as https://shop.example, without a path, or *",
  });

const count = z.number().int().min(1);

const leaseKey = (name: string): z.ZodOptional<z.ZodString> =>
  z.string().min(16, `expected a key (${name}) of at least 16 characters`).optional();

const fields = z.strictObject({
  engine: z.unknown().optional(),
  auth: authSchema.optional(),
  maxWaitMs: count.max(3_600_000).default(60_000),
  requestsPerSecond: count.optional(),
  leaseKey: leaseKey("HOLDFAST_LEASE_KEY"),
  oldLeaseKey: leaseKey("HOLDFAST_LEASE_KEY_OLD"),
  maxWaitsOfOne: count.optional(),
  maxWaitsOfKey: count.default(500),
  maxLeasesOfOne: count.default(1_000),
  maxStreamsOfOne: count.default(200),
  maxConnections: count.default(50_000),
  drainMs: z.number().int().min(0).default(10_000),
  groups: z.array(z.string().min(1)).default([]),
  console: z.boolean().default(true),
  readOnly: z.boolean().default(false),
  allowedOrigins: z.array(origin).default([]),
  doctor: z.unknown().optional(),
  log: z.unknown().optional(),
});

const schema = fields
  .refine(({ auth, allowedOrigins }) => auth !== undefined || !allowedOrigins.includes("*"), {
    path: ["allowedOrigins"],
    error:
      "expected authentication for *, because otherwise every web page could take the locks of this machine",
  })
  .refine(({ leaseKey, oldLeaseKey }) => leaseKey !== undefined || oldLeaseKey === undefined, {
    path: ["oldLeaseKey"],
    error: "expected a leaseKey (HOLDFAST_LEASE_KEY) beside the old one (HOLDFAST_LEASE_KEY_OLD)",
  });

/** Validates the options of authentication. @throws {TypeError} with the name of each invalid field */
export function checkAuth(auth: AuthOptions): AuthOptions {
  const read = authSchema.safeParse(auth);
  if (!read.success) {
    throw new TypeError(`Invalid tokens or issuers:\n${z.prettifyError(read.error)}`);
  }
  return read.data;
}

/** Validates each value once. @throws {TypeError} with the name of each invalid option */
export function resolveService(options: ServiceOptions): ResolvedService {
  const read = schema.safeParse(options);
  if (!read.success) {
    throw new TypeError(`Invalid options of the service:\n${z.prettifyError(read.error)}`);
  }
  const { engine, log = () => undefined, doctor } = options;
  const { auth, requestsPerSecond, leaseKey, oldLeaseKey, maxWaitsOfOne, ...rest } = read.data;
  return { ...rest, auth, requestsPerSecond, leaseKey, oldLeaseKey, maxWaitsOfOne, engine, log, doctor };
}
