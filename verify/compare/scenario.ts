import type { Library } from "./library.ts";
import type { Outcome } from "./outcome.ts";

/** Causes one failure on real servers, for one library in a process of its own, and judges the library's behaviour. */
export interface Scenario {
  /** After this time the library counts as hung. */
  readonly withinMs: number;
  /** Whether the scenario uses the whole machine, so that no other may run beside it. */
  readonly isHeavy?: boolean;
  run(library: Library): Promise<Outcome>;
}
