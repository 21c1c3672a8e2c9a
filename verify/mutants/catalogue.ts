import { engines } from "./catalogue/engines.ts";
import { leases } from "./catalogue/leases.ts";
import { quorum } from "./catalogue/quorum.ts";
import { server } from "./catalogue/server.ts";
import type { Mutant } from "./mutant.ts";

/** The mutants with an aim: each breaks one sentence of the guarantees or of the protocol. */
export const catalogue: readonly Mutant[] = [...leases, ...server, ...quorum, ...engines];
