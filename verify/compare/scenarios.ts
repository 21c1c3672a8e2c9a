import type { FailureName } from "./failures.ts";
import type { Scenario } from "./scenario.ts";
import { abortedWaiters } from "./scenarios/aborted-waiters.ts";
import { blockedLoop } from "./scenarios/blocked-loop.ts";
import { databaseAndPrefix } from "./scenarios/database-and-prefix.ts";
import { deadShard } from "./scenarios/dead-shard.ts";
import { deadWaiter } from "./scenarios/dead-waiter.ts";
import { frozenServer } from "./scenarios/frozen-server.ts";
import { lostReply } from "./scenarios/lost-reply.ts";
import { minorityAway } from "./scenarios/minority-away.ts";
import { nearNodes } from "./scenarios/near-nodes.ts";
import { releaseAfterExpiry } from "./scenarios/release-after-expiry.ts";
import { semaphoreClocks } from "./scenarios/semaphore-clocks.ts";
import { tie } from "./scenarios/tie.ts";
import { timedOutAcquire } from "./scenarios/timed-out-acquire.ts";
import { tinyTtl } from "./scenarios/tiny-ttl.ts";
import { transientError } from "./scenarios/transient-error.ts";
import { unknownHolder } from "./scenarios/unknown-holder.ts";

/** The scenario of each failure. */
export const scenarios: Readonly<Record<FailureName, Scenario>> = {
  "lost-reply": lostReply,
  "blocked-loop": blockedLoop,
  "frozen-server": frozenServer,
  "transient-error": transientError,
  tie,
  "near-nodes": nearNodes,
  "minority-away": minorityAway,
  "release-after-expiry": releaseAfterExpiry,
  "timed-out-acquire": timedOutAcquire,
  "tiny-ttl": tinyTtl,
  "unknown-holder": unknownHolder,
  "database-and-prefix": databaseAndPrefix,
  "semaphore-clocks": semaphoreClocks,
  "aborted-waiters": abortedWaiters,
  "dead-waiter": deadWaiter,
  "dead-shard": deadShard,
};
