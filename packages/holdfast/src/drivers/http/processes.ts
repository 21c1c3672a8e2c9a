import type { ProcessHold, ProcessList, ProcessState, ProcessWait } from "../../processes/process-state.ts";
import { withJson } from "../../runtime/plain-values.ts";

/** `GET /v1/processes`: the processes of the service's engine. */
interface WireProcesses extends Omit<ProcessList, "processes"> {
  readonly processes: readonly WireProcess[];
}

interface WireProcess extends Omit<ProcessState, "holds" | "waits"> {
  readonly holds: readonly (Omit<ProcessHold, "fencingToken"> & { readonly fencingToken: string })[];
  readonly waits: readonly ProcessWait[];
}

/** The processes, from the service's JSON. */
export function processListOf(body: unknown): ProcessList {
  const { processes, ...list } = body as WireProcesses;
  return {
    ...list,
    processes: processes.map((process) => ({
      ...process,
      holds: process.holds.map((hold) => withJson({ ...hold, fencingToken: BigInt(hold.fencingToken) })),
    })),
  };
}
