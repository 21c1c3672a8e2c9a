import type { Lease } from "holdfast";

type State = "waiting" | "granted" | "over";

/** One request, from the asking to the end of its lease. */
export interface PlayedRequest {
  readonly id: number;
  readonly by: number;
  readonly waits: boolean;
  readonly controller: AbortController;
  /** Greater than every number that had been seen when it was asked. */
  readonly floor: bigint;
  /** The limit that it named. */
  readonly limit: number;
  weight: number;
  /** An operator's force ended it, of which its holder need not have heard. */
  isBroken: boolean;
  /** For a while it wanted more than there was: an engine may send it away, and it asks again. */
  wasImpossible: boolean;
  state: State;
  lease: Lease | undefined;
  grantedIn: number;
}
