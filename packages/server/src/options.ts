import { z } from "zod";
import type { Driver } from "holdfast";

import type { AuthOptions } from "./auth.ts";
import type { Log } from "./log.ts";

export interface ServiceOptions {
  /** A URL as `holdfast/connect` reads it, or a driver, which is closed with the service. @defaultValue "memory:" */
  readonly engine?: string | Driver | undefined;
  /** Who may come in. Without it everybody, and only from this machine. */
  readonly auth?: AuthOptions | undefined;
  /** The longest that an answer is held back, ms; a stream waits as long as is asked. @defaultValue 60 000 */
  readonly maxWaitMs?: number | undefined;
  /** How many requests of one principal are taken in a second; renewals and releases always are. @defaultValue no bound */
  readonly requestsPerSecond?: number | undefined;
  /** Signs lease ids; the same for every instance. 16 characters at least. @defaultValue lease ids are unsigned */
  readonly leaseKey?: string | undefined;
  /** How many waits one principal may have open at this instance. @defaultValue 20 000 */
  readonly maxWaitsOfOne?: number | undefined;
  /** How many streams of events one principal may have open at this instance. @defaultValue 200 */
  readonly maxStreamsOfOne?: number | undefined;
  /** @defaultValue 50 000 */
  readonly maxConnections?: number | undefined;
  /** How long `drain` waits for what is open, ms. @defaultValue 10 000 */
  readonly drainMs?: number | undefined;
  /** Prefixes of keys that metrics tell apart; other keys by what stands before their first `:`. */
  readonly groups?: readonly string[] | undefined;
  /** @defaultValue nothing is logged */
  readonly log?: Log | undefined;
}

/** May be left away, and have no default. */
type Optional = "auth" | "requestsPerSecond" | "leaseKey";

/** The same, with the defaults. */
export type ResolvedService = Pick<ServiceOptions, Optional> & {
  readonly [Name in Exclude<keyof ServiceOptions, Optional>]-?: NonNullable<ServiceOptions[Name]>;
};

const grants = z.array(
  z.strictObject({
    scope: z.enum(["lock:acquire", "lock:read", "lock:force", "admin"]),
    prefix: z.string(),
  }),
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
  .refine(({ tokens = [], jwt = [] }) => tokens.length + jwt.length > 0, "there is nobody in it");

const count = z.number().int().min(1);

const schema = z.strictObject({
  engine: z.unknown().optional(),
  auth: authSchema.optional(),
  maxWaitMs: count.max(3_600_000).default(60_000),
  requestsPerSecond: count.optional(),
  leaseKey: z.string().min(16).optional(),
  maxWaitsOfOne: count.default(20_000),
  maxStreamsOfOne: count.default(200),
  maxConnections: count.default(50_000),
  drainMs: z.number().int().min(0).default(10_000),
  groups: z.array(z.string().min(1)).default([]),
  log: z.unknown().optional(),
});

/** Checks each value once. @throws {TypeError} that says which is wrong */
export function resolveService(options: ServiceOptions): ResolvedService {
  const read = schema.safeParse(options);
  if (!read.success) {
    throw new TypeError(`The options of the service are not understood:\n${z.prettifyError(read.error)}`);
  }
  const { engine = "memory:", log = () => undefined } = options;
  const { auth, requestsPerSecond, leaseKey, ...rest } = read.data;
  return { ...rest, auth, requestsPerSecond, leaseKey, engine, log };
}
