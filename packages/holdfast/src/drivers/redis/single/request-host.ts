import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Holder } from "../../../lock-state.ts";
import type { TimerQueue } from "../../../runtime/timer-queue.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "../server/server.ts";
import type { ReleaseQueue } from "../server/release-queue.ts";
import type { Wakeable } from "../server/server-call.ts";

/** A driver, as its requests need it. */
export interface RequestHost<Request> {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly timers: TimerQueue<Wakeable>;
  readonly releaseQueue: ReleaseQueue;
  /** The server that has these keys. */
  serverFor(keys: LockKeys): RedisServer;
  tokenFor(request: AcquireRequest, server: RedisServer): string;
  begin(request: Request): void;
  /** The request has an entry in the server's queue. */
  queued(request: Request): void;
  settled(request: Request): void;
  /** The request has its grant, and the server may still execute an earlier copy of it. The release must know the request. */
  grantedEarly(request: Request): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
