import type { AcquireRequest } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import type { Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import type { GrantRegistry } from "./grant-registry.ts";
import type { MajorityAttemptHost } from "./majority-attempt.ts";

/**
 * The driver of a request.
 * @typeParam Request - the class of the requests
 */
export interface QuorumHost<Request extends Scheduled> extends MajorityAttemptHost {
  readonly timers: TimerQueue<Request>;
  readonly commandTimeoutMs: number;
  readonly grants: GrantRegistry;
  /** Creates a token for an attempt. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  settled(request: Request): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
