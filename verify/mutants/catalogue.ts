import { calls } from "./catalogue/calls.ts";
import { cluster } from "./catalogue/cluster.ts";
import { counter } from "./catalogue/quorum-counter.ts";
import { extension } from "./catalogue/extension.ts";
import { fencing } from "./catalogue/fencing.ts";
import { hearing } from "./catalogue/notifications.ts";
import { keys } from "./catalogue/keys.ts";
import { latch } from "./catalogue/latch.ts";
import { kinds } from "./catalogue/kinds.ts";
import { late } from "./catalogue/late.ts";
import { leases } from "./catalogue/leases.ts";
import { line } from "./catalogue/local-queue.ts";
import { majority } from "./catalogue/majority.ts";
import { memory } from "./catalogue/memory.ts";
import { oneCounter } from "./catalogue/fencing-counter.ts";
import { oneNode } from "./catalogue/quorum-node.ts";
import { oneServer } from "./catalogue/single.ts";
import { quarantine } from "./catalogue/quarantine.ts";
import { remembered } from "./catalogue/remembered-votes.ts";
import { replicas } from "./catalogue/replicas.ts";
import { shares } from "./catalogue/shares.ts";
import { validity } from "./catalogue/validity.ts";
import { waiters } from "./catalogue/waiters.ts";
import type { Mutant } from "./mutant.ts";

/** All mutants. Those of one file of the catalogue break one part of the design. */
export const catalogue: readonly Mutant[] = [
  ...keys,
  ...oneServer,
  ...calls,
  ...oneNode,
  ...waiters,
  ...validity,
  ...hearing,
  ...late,
  ...majority,
  ...extension,
  ...fencing,
  ...oneCounter,
  ...counter,
  ...line,
  ...leases,
  ...quarantine,
  ...remembered,
  ...memory,
  ...shares,
  ...replicas,
  ...latch,
  ...kinds,
  ...cluster,
];
