import { invalidValue } from "../option-checks.ts";
import type { NodeSource } from "./node-metrics.ts";

/** Ends an instrumentation: by a call, or at the end of a `using` block. */
export type Instrumentation = (() => void) & Disposable;

/** An instrumentation that ends by these steps, once. */
export function instrumentation(steps: readonly (() => void)[]): Instrumentation {
  let isEnded = false;
  const end = (): void => {
    if (!isEnded) {
      isEnded = true;
      steps.forEach((step) => step());
    }
  };
  return Object.assign(end, { [Symbol.dispose]: end });
}

/** The value of the option `locks`. @throws {TypeError} */
export function sourcesOf<Source extends NodeSource>(
  locks: Source | readonly Source[] | undefined,
): readonly Source[] {
  const sources =
    locks === undefined ? [] : Array.isArray(locks) ? (locks as readonly Source[]) : [locks as Source];
  for (const source of sources) {
    if (typeof source?.admin?.nodes !== "function") {
      throw invalidValue("locks", "`Locks`, or an array of `Locks`", source);
    }
  }
  return sources;
}
