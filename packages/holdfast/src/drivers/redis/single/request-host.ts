import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Holder } from "../../../lock-state.ts";
import type { TimerQueue } from "../../../runtime/timer-queue.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Node } from "../server/server.ts";
import type { Releaser } from "../server/release-queue.ts";
import type { Waking } from "../server/server-call.ts";
import type { Request } from "./request.ts";

/** What a request needs of its driver. */
export interface RequestHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly agenda: TimerQueue<Waking>;
  readonly releaser: Releaser;
  /** The server that has these keys. */
  nodeOf(keys: LockKeys): Node;
  tokenFor(wanted: AcquireRequest, node: Node): string;
  begin(request: Request): void;
  /** The request has a place in the server's queue. */
  queued(request: Request): void;
  settled(request: Request): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
