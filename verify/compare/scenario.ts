import type { Library } from "./library.ts";
import type { Outcome } from "./outcome.ts";

/** Brings about one failure on real servers, for one library in a process of its own, and judges what it did. */
export interface Scenario {
  /** After this the library hangs. */
  readonly withinMs: number;
  /** It keeps the machine busy: nothing may run beside it. */
  readonly isHeavy?: boolean;
  run(library: Library): Promise<Outcome>;
}
