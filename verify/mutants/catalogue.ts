import { calls } from "./catalogue/calls.ts";
import { cluster } from "./catalogue/cluster.ts";
import { counter } from "./catalogue/quorum-counter.ts";
import { extension } from "./catalogue/extension.ts";
import { fencing } from "./catalogue/fencing.ts";
import { notifications } from "./catalogue/notifications.ts";
import { keys } from "./catalogue/keys.ts";
import { latch } from "./catalogue/latch.ts";
import { kinds } from "./catalogue/kinds.ts";
import { lateReplies } from "./catalogue/late.ts";
import { leases } from "./catalogue/leases.ts";
import { localQueue } from "./catalogue/local-queue.ts";
import { majority } from "./catalogue/majority.ts";
import { memory } from "./catalogue/memory.ts";
import { singleFencingCounter } from "./catalogue/fencing-counter.ts";
import { oneNode } from "./catalogue/quorum-node.ts";
import { singleServer } from "./catalogue/single.ts";
import { quarantine } from "./catalogue/quarantine.ts";
import { rememberedVotes } from "./catalogue/remembered-votes.ts";
import { replicas } from "./catalogue/replicas.ts";
import { sharedModes } from "./catalogue/shares.ts";
import { validity } from "./catalogue/validity.ts";
import { waiters } from "./catalogue/waiters.ts";
import type { Mutant } from "./mutant.ts";

/** All mutants. Those of one file of the catalogue break one part of the design. */
export const catalogue: readonly Mutant[] = [
  ...keys,
  ...singleServer,
  ...calls,
  ...oneNode,
  ...waiters,
  ...validity,
  ...notifications,
  ...lateReplies,
  ...majority,
  ...extension,
  ...fencing,
  ...singleFencingCounter,
  ...counter,
  ...localQueue,
  ...leases,
  ...quarantine,
  ...rememberedVotes,
  ...memory,
  ...sharedModes,
  ...replicas,
  ...latch,
  ...kinds,
  ...cluster,
];
