import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Holder } from "../../../lock-state.ts";
import type { TimerQueue } from "../../../runtime/timer-queue.ts";
import type { NodeSet } from "./node-set.ts";
import type { GrantRegistry } from "./grant-registry.ts";
import type { QuorumRequest } from "./request.ts";

/** What a request and its bids need of their driver. */
export interface QuorumHost {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  readonly grants: GrantRegistry;
  /** A fresh token for an attempt. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  settled(request: QuorumRequest): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
