import { calls } from "./catalogue/calls.ts";
import { latestTimes } from "./catalogue/latest-time.ts";
import { etcd } from "./catalogue/etcd.ts";
import { mysql } from "./catalogue/mysql.ts";
import { postgres } from "./catalogue/postgres.ts";
import { watchdogThread } from "./catalogue/watchdog-thread.ts";
import { zookeeper } from "./catalogue/zookeeper.ts";
import { cluster } from "./catalogue/cluster.ts";
import { counter } from "./catalogue/quorum-counter.ts";
import { extension } from "./catalogue/extension.ts";
import { fencing } from "./catalogue/fencing.ts";
import { notifications } from "./catalogue/notifications.ts";
import { fullMemory } from "./catalogue/full-memory.ts";
import { keys } from "./catalogue/keys.ts";
import { latch } from "./catalogue/latch.ts";
import { kinds } from "./catalogue/kinds.ts";
import { once } from "./catalogue/once.ts";
import { lateReplies } from "./catalogue/late.ts";
import { releases } from "./catalogue/releases.ts";
import { layouts } from "./catalogue/layouts.ts";
import { leases } from "./catalogue/leases.ts";
import { clones } from "./catalogue/clones.ts";
import { unresponsiveServers } from "./catalogue/unresponsive.ts";
import { leaseDeadlines } from "./catalogue/lease-deadlines.ts";
import { localQueue } from "./catalogue/local-queue.ts";
import { majority } from "./catalogue/majority.ts";
import { yields } from "./catalogue/yields.ts";
import { memory } from "./catalogue/memory.ts";
import { singleFencingCounter } from "./catalogue/fencing-counter.ts";
import { fencingBlocks } from "./catalogue/fencing-blocks.ts";
import { oneNode } from "./catalogue/quorum-node.ts";
import { singleServer } from "./catalogue/single.ts";
import { holderMetadata } from "./catalogue/metadata.ts";
import { quarantine } from "./catalogue/quarantine.ts";
import { rememberedVotes } from "./catalogue/remembered-votes.ts";
import { replicas } from "./catalogue/replicas.ts";
import { sharedModes } from "./catalogue/shares.ts";
import { validity } from "./catalogue/validity.ts";
import { waiters } from "./catalogue/waiters.ts";
import type { Mutant } from "./mutant.ts";

/** All mutants. Each file of the catalogue breaks one part of the design. */
export const catalogue: readonly Mutant[] = [
  ...keys,
  ...singleServer,
  ...holderMetadata,
  ...calls,
  ...latestTimes,
  ...oneNode,
  ...waiters,
  ...validity,
  ...notifications,
  ...lateReplies,
  ...releases,
  ...majority,
  ...yields,
  ...extension,
  ...fencing,
  ...singleFencingCounter,
  ...fullMemory,
  ...fencingBlocks,
  ...counter,
  ...localQueue,
  ...leases,
  ...layouts,
  ...clones,
  ...unresponsiveServers,
  ...leaseDeadlines,
  ...quarantine,
  ...rememberedVotes,
  ...memory,
  ...sharedModes,
  ...replicas,
  ...latch,
  ...kinds,
  ...once,
  ...watchdogThread,
  ...cluster,
  ...postgres,
  ...mysql,
  ...etcd,
  ...zookeeper,
];
