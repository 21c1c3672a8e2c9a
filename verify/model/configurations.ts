import { ClocksModel } from "./clocks/clocks.ts";
import { defaultClocks, type ClocksSettings } from "./clocks/settings.ts";
import type { Limits } from "./explorer/explore.ts";
import type { Model } from "./explorer/model.ts";
import { ExtensionModel } from "./extension/extension.ts";
import { defaultExtension, type ExtensionSettings } from "./extension/settings.ts";
import { FencingModel } from "./fencing/fencing.ts";
import { defaultFencing, type FencingSettings } from "./fencing/settings.ts";
import { faultFreeQueue, type QueueSettings } from "./queue/settings.ts";
import { QueueModel } from "./queue/queue.ts";

/** One exploration: a model and its bounds. */
export interface Configuration {
  readonly name: string;
  readonly nodes: number;
  readonly attempts: number;
  /** The faults that the bounds allow, in a few words. */
  readonly covers: string;
  /** Takes minutes, so it runs only with --long. */
  readonly isLong: boolean;
  readonly limits: Limits;
  model(): Model;
  /** The model with the same bounds and without a broken rule. Without a mutant both models are equal. */
  intact(): Model;
}

/** Limits that no exploration reaches, so that each ends when all states were visited. */
const unbounded: Limits = { states: 60_000_000, depth: 10_000 };

type Sizes = { readonly isLong?: boolean; readonly limits?: Limits };

export function queue(
  name: string,
  covers: string,
  settings: Partial<QueueSettings>,
  { isLong = false, limits = unbounded }: Sizes = {},
): Configuration {
  const resolved = { ...faultFreeQueue, ...settings };
  const { attempts, numbers } = resolved;
  const nodes = resolved.nodes + resolved.silentNodes;
  const model = (): Model => new QueueModel(resolved, numbers !== "agreed");
  const intact = (): Model => new QueueModel({ ...resolved, mutant: undefined }, numbers !== "agreed");
  return { name, nodes, attempts, covers, isLong, limits, model, intact };
}

export function fencing(
  name: string,
  covers: string,
  settings: Partial<FencingSettings>,
  { isLong = false, limits = unbounded }: Sizes = {},
): Configuration {
  const resolved = { ...defaultFencing, ...settings };
  const { nodes, attempts } = resolved;
  const model = (): Model => new FencingModel(resolved);
  const intact = (): Model => new FencingModel({ ...resolved, mutant: undefined });
  return { name, nodes, attempts, covers, isLong, limits, model, intact };
}

export function extension(
  name: string,
  covers: string,
  settings: Partial<ExtensionSettings>,
  { isLong = false, limits = unbounded }: Sizes = {},
): Configuration {
  const resolved = { ...defaultExtension, ...settings };
  const { nodes, attempts } = resolved;
  const model = (): Model => new ExtensionModel(resolved);
  const intact = (): Model => new ExtensionModel({ ...resolved, mutant: undefined });
  return { name, nodes, attempts, covers, isLong, limits, model, intact };
}

export function clocks(
  name: string,
  covers: string,
  settings: Partial<ClocksSettings>,
  { isLong = false, limits = unbounded }: Sizes = {},
): Configuration {
  const resolved = { ...defaultClocks, ...settings };
  const { attempts, ahead } = resolved;
  const model = (): Model => new ClocksModel(resolved);
  const intact = (): Model => new ClocksModel({ ...resolved, mutant: undefined });
  return { name, nodes: ahead.length, attempts, covers, isLong, limits, model, intact };
}

const longConfigurations = { isLong: true };
/** By depth: the exploration visits all states that fewer steps reach. */
const longUpTo3Million = { isLong: true, limits: { states: 3_000_000, depth: 10_000 } };

export const configurations: readonly Configuration[] = [
  queue("turns", "late messages in any order", {}),
  queue("turns-lost", "2 losses, 1 repeat", { losses: 2, resends: 1 }),
  queue("turns-doubled", "1 double, 1 repeat, 1 loss, 1 cancel", {
    duplicates: 1,
    resends: 1,
    losses: 1,
    cancels: 1,
  }),
  queue("turns-places", "1 queue entry that a node drops, 1 break, 1 try that finds a node free, 1 loss", {
    places: 1,
    breaks: 1,
    passes: 1,
    losses: 1,
  }),
  queue("turns-refills", "1 refill, 1 expiry, 1 double", { refills: 1, expiries: 1, duplicates: 1 }),
  queue("turns-rounds", "numbers settled in later rounds; 1 loss, 1 expiry, 1 cancel", {
    numbers: "later",
    losses: 1,
    expiries: 1,
    cancels: 1,
  }),
  queue("turns-faults", "1 dead or frozen client, 1 restart, 1 expiry, 1 cancel", {
    clientFaults: 1,
    restarts: 1,
    expiries: 1,
    cancels: 1,
  }),
  queue(
    "turns-minority-down",
    "1 node unresponsive; 2 losses, 1 dead or frozen client, 1 expiry, 2 repeats",
    {
      nodes: 2,
      silentNodes: 1,
      losses: 2,
      clientFaults: 1,
      expiries: 1,
      resends: 2,
    },
  ),
  queue("turns-equal-tickets", "equal tickets; 1 loss, 1 repeat", {
    equalTickets: true,
    losses: 1,
    resends: 1,
  }),
  queue("turns-agreed", "with fencing numbers in up to 3 rounds, candidates 1 and 2; 1 cancel", {
    numbers: "agreed",
    proposals: 2,
    cancels: 1,
  }),
  queue("turns-3-clients", "late messages in any order", { attempts: 3 }),
  queue("turns-3-clients-minority-down", "1 node unresponsive; 1 loss, 1 cancel", {
    nodes: 2,
    silentNodes: 1,
    attempts: 3,
    losses: 1,
    cancels: 1,
  }),
  queue("turns-4-nodes", "1 loss, 1 expiry", { nodes: 4, losses: 1, expiries: 1 }),
  queue("turns-5-nodes", "late messages in any order", { nodes: 5 }),
  fencing("fencing-untimed", "no assumption about time; candidates 1 and 2", {}),
  fencing("fencing-timed", "Redlock's assumption; candidates 1 and 2, 1 extra effect", {
    isTimed: true,
    extraEffects: 1,
  }),
  fencing("fencing-restart", "Redlock's assumption; 1 restart, candidates follow", {
    isTimed: true,
    restarts: 1,
    proposals: "following",
  }),
  extension("extension", "no assumption about time; rounds without bound", {}),
  clocks("clocks", "with a clock; 1 node's clock is set once", {}),
  clocks("clocks-late", "with a clock; 1 node's clock is set once, 1 late request", { late: 1 }),
  clocks("clocks-evicted", "with a clock; 1 node loses the key once", { sets: 0, evictions: 1 }),

  queue(
    "turns-all-faults",
    "1 each: loss, dead or frozen client, restart, expiry, cancel",
    {
      losses: 1,
      clientFaults: 1,
      restarts: 1,
      expiries: 1,
      cancels: 1,
    },
    longConfigurations,
  ),
  queue(
    "turns-many-losses",
    "2 losses, 2 repeats, 1 double",
    { losses: 2, resends: 2, duplicates: 1 },
    longConfigurations,
  ),
  queue(
    "turns-agreed-expiry",
    "with fencing numbers, candidates 1 and 2; 1 expiry",
    { numbers: "agreed", proposals: 2, expiries: 1 },
    longConfigurations,
  ),
  queue(
    "turns-agreed-faults",
    "with fencing numbers, candidate 1; 1 loss, 1 double",
    { numbers: "agreed", losses: 1, duplicates: 1 },
    longConfigurations,
  ),
  queue(
    "turns-3-clients-faults",
    "1 loss, 1 expiry",
    { attempts: 3, losses: 1, expiries: 1 },
    longUpTo3Million,
  ),
  queue(
    "turns-3-clients-agreed",
    "with fencing numbers",
    {
      attempts: 3,
      numbers: "agreed",
    },
    longUpTo3Million,
  ),
  queue("turns-4-nodes-3-clients", "late messages in any order", { nodes: 4, attempts: 3 }, longUpTo3Million),
  queue(
    "turns-5-nodes-faults",
    "1 loss, 1 restart, 1 cancel",
    {
      nodes: 5,
      losses: 1,
      restarts: 1,
      cancels: 1,
    },
    longUpTo3Million,
  ),
  queue("turns-5-nodes-3-clients", "late messages in any order", { nodes: 5, attempts: 3 }, longUpTo3Million),
  fencing(
    "fencing-restart-repeated",
    "Redlock's assumption; 1 restart, 1 extra effect, candidates follow",
    { isTimed: true, restarts: 1, extraEffects: 1, proposals: "following" },
    longConfigurations,
  ),
  fencing(
    "fencing-untimed-late",
    "no assumption about time; late replies, candidate 1",
    {
      lateReplies: true,
      proposals: 1,
    },
    longConfigurations,
  ),
  fencing(
    "fencing-timed-late",
    "Redlock's assumption; late replies, candidates 1 and 2, 1 extra effect",
    {
      isTimed: true,
      lateReplies: true,
      extraEffects: 1,
    },
    longConfigurations,
  ),
  fencing(
    "fencing-3-clients",
    "Redlock's assumption; candidate 1",
    {
      attempts: 3,
      isTimed: true,
      proposals: 1,
    },
    longUpTo3Million,
  ),
  fencing(
    "fencing-5-nodes",
    "no assumption about time; candidate 1",
    {
      nodes: 5,
      proposals: 1,
    },
    longUpTo3Million,
  ),
  extension(
    "extension-late",
    "no assumption about time; late replies",
    { lateReplies: true },
    longUpTo3Million,
  ),
  extension("extension-3-clients", "no assumption about time", { attempts: 3 }, longUpTo3Million),
  extension("extension-5-nodes", "no assumption about time", { nodes: 5 }, longUpTo3Million),
];
