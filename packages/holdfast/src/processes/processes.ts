import type { LocalCoordinator } from "../local/coordinator.ts";
import { checkInteger, checkOptionNames, checkSignal } from "../option-checks.ts";
import { localReports } from "./local-reports.ts";
import type { ProcessesOptions, ProcessList, ProcessQuery } from "./process-state.ts";

/** The largest report of this process to its own caller, in characters. */
const ownLength = 16_000_000;

export function resolveProcesses(options: ProcessesOptions = {}): ProcessQuery {
  checkOptionNames(options, ["key", "timeoutMs", "signal"]);
  const { key, timeoutMs = 500, signal } = options;
  return {
    key,
    timeoutMs: checkInteger("timeoutMs", timeoutMs, 10, 60_000),
    signal: signal === undefined ? undefined : checkSignal("signal", signal),
  };
}

/** Asks the directory of the engine. Without a directory the answer is of this process only. */
export async function listProcesses(
  coordinator: LocalCoordinator,
  query: ProcessQuery,
): Promise<ProcessList> {
  const { driver, clock } = coordinator;
  query.signal?.throwIfAborted();
  if (driver.processes) {
    return driver.processes.ask(query);
  }
  const processes = localReports(driver, { key: query.key, maxLength: ownLength });
  const problem = "this engine has no directory of processes";
  return { processes, scope: "process", complete: true, problem, asOf: clock.wall() };
}
