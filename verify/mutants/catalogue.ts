import { fencing } from "./catalogue/fencing.ts";
import { grants } from "./catalogue/grants.ts";
import { inProcess } from "./catalogue/in-process.ts";
import { keys } from "./catalogue/keys.ts";
import { majority } from "./catalogue/majority.ts";
import { memory } from "./catalogue/memory.ts";
import { oneNode } from "./catalogue/one-node.ts";
import { quarantine } from "./catalogue/quarantine.ts";
import type { Mutant } from "./mutant.ts";

/** All mutants. Those of one file of the catalogue break one part of the design. */
export const catalogue: readonly Mutant[] = [
  ...keys,
  ...oneNode,
  ...grants,
  ...majority,
  ...fencing,
  ...inProcess,
  ...quarantine,
  ...memory,
];
