import type { Lease } from "holdfast";

type State = "waiting" | "granted" | "over";

/** One request, from its sending to the end of its lease. */
export interface PlayedRequest {
  readonly id: number;
  readonly by: number;
  readonly waits: boolean;
  readonly controller: AbortController;
  /** At least as large as every fencing token granted before the request. */
  readonly floor: bigint;
  /** The limit that the request sent. */
  readonly limit: number;
  weight: number;
  /** An operator broke the grant. The holder may not know of the break. */
  isBroken: boolean;
  /** The request once exceeded the limit. The engine may have refused it, and the waiter then polls. */
  wasImpossible: boolean;
  state: State;
  lease: Lease | undefined;
  grantedIn: number;
}
