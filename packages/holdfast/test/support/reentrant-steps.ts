import fc from "fast-check";

export type Step =
  | {
      readonly acquire: "work" | "lease";
      readonly by: number;
      /** A session, an enclosing work (0 is the newest), or neither. */
      readonly as: { readonly session: string } | { readonly inside: number } | null;
      readonly ttlMs: number;
      readonly renew: boolean;
      readonly waitMs: number | null;
    }
  | { readonly release: number }
  | { readonly end: number }
  | { readonly abort: number }
  | { readonly lose: number }
  | { readonly advance: number };

const which = fc.nat(5);

/** Times are hundreds of ms plus 50 or 20, so that an expiry and a deadline never coincide. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 24,
      arbitrary: fc.record({
        acquire: fc.constantFrom("work", "lease"),
        by: fc.nat(1),
        as: fc.oneof(
          { weight: 1, arbitrary: fc.constant(null) },
          { weight: 2, arbitrary: fc.record({ session: fc.constantFrom("s", "t") }) },
          { weight: 4, arbitrary: fc.record({ inside: fc.nat(2) }) },
        ),
        ttlMs: fc.integer({ min: 2, max: 8 }).map((hundreds) => hundreds * 100 + 50),
        renew: fc.boolean(),
        waitMs: fc.constantFrom(null, 0, 120, 520, Infinity, Infinity, Infinity),
      }),
    },
    { weight: 12, arbitrary: fc.record({ release: which }) },
    { weight: 8, arbitrary: fc.record({ end: which }) },
    { weight: 5, arbitrary: fc.record({ abort: which }) },
    { weight: 2, arbitrary: fc.record({ lose: fc.nat(1) }) },
    { weight: 6, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6 }).map((n) => n * 100) }) },
  ),
  { maxLength: 40, size: "max" },
) as fc.Arbitrary<Step[]>;
