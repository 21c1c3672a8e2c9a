import type { Clock } from "../../../clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Random } from "../../../random.ts";
import type { Holder } from "../../../state.ts";
import type { TimerQueue } from "../../../timer-queue.ts";
import type { Electorate } from "./electorate.ts";
import type { Holdings } from "./holdings.ts";
import type { QuorumRequest } from "./request.ts";

/** What a request and its bids need of their driver. */
export interface QuorumHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly random: Random;
  readonly agenda: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  readonly holdings: Holdings;
  /** A fresh token for an attempt. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  settled(request: QuorumRequest): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
