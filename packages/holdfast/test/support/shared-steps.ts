import type { AcquireOptions, Lockable, Locks } from "holdfast";
import type { FaultInjector } from "holdfast/testing";
import fc from "fast-check";

/** A kind of lock with several holders. Each request has a weight. */
export interface SharedKind {
  readonly limit: number;
  readonly weights: readonly number[];
  readonly limits: readonly number[];
  lockable(locks: Locks, key: string, weight: number, limit: number): Lockable<AcquireOptions>;
  setLimit(locks: Locks, key: string, present: number, wanted: number): Promise<void>;
}

export const processes = 3;
export const key = "k";

export type Step =
  | {
      readonly acquire: number;
      readonly by: number;
      readonly ttlMs: number;
      readonly waitMs: number | null;
      readonly renew: boolean;
    }
  | { readonly release: number }
  | { readonly extend: number; readonly ttlMs: number }
  | { readonly abort: number }
  | { readonly break: number; readonly by: number }
  | { readonly downgrade: number; readonly isAnswerLost: boolean }
  | { readonly setLimit: number; readonly by: number }
  | { readonly advance: number }
  | { readonly close: number }
  | { readonly fault: "silence" | "reset" | "duplicate" | "mute" | "none"; readonly at: number };

interface Weights {
  readonly downgrade?: number;
  readonly setLimit?: number;
  readonly fault?: number;
}

/** Times are hundreds of ms plus 1 or 50, so that an expiry and a deadline never coincide. */
export function stepsOf(kind: SharedKind, weights: Weights): fc.Arbitrary<Step[]> {
  const by = fc.nat(processes - 1);
  const which = fc.nat(6);
  const ttlMs = fc.integer({ min: 2, max: 8 }).map((hundreds) => hundreds * 100 + 1);
  const waitMs = fc.constantFrom(null, 0, 150, 550, 1_050, Infinity, Infinity);
  const step = fc.oneof(
    {
      weight: 24,
      arbitrary: fc.record({
        acquire: fc.constantFrom(...kind.weights),
        by,
        ttlMs,
        waitMs,
        renew: fc.boolean(),
      }),
    },
    { weight: 14, arbitrary: fc.record({ release: which }) },
    { weight: 4, arbitrary: fc.record({ extend: which, ttlMs }) },
    { weight: 6, arbitrary: fc.record({ abort: which }) },
    { weight: 4, arbitrary: fc.record({ break: which, by }) },
    { weight: 12, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6 }).map((n) => n * 100) }) },
    {
      weight: 4 * (weights.downgrade ?? 0),
      arbitrary: fc.record({ downgrade: which, isAnswerLost: fc.boolean() }),
    },
    {
      weight: 4 * (weights.setLimit ?? 0),
      arbitrary: fc.record({ setLimit: fc.constantFrom(...kind.limits), by }),
    },
    {
      weight: 4 * (weights.fault ?? 0),
      arbitrary: fc.record({
        fault: fc.constantFrom("silence", "reset", "duplicate", "mute", "none"),
        at: by,
      } as const),
    },
    { weight: 1, arbitrary: fc.record({ close: by }) },
  );
  return fc.array(step, { maxLength: 40, size: "max" }) as fc.Arbitrary<Step[]>;
}

/** Disturbs the connection of one process from now on. */
export function injectFault(
  faults: FaultInjector | undefined,
  fault: Extract<Step, { fault: string }>["fault"],
): void {
  switch (fault) {
    case "silence":
    case "reset":
      faults?.dropReply(1, fault);
      return;
    case "duplicate":
      faults?.duplicate(1, 130);
      return;
    case "mute":
      faults?.dropMessages(() => true);
      return;
    case "none":
      faults?.dropMessages(null);
      return;
  }
}
