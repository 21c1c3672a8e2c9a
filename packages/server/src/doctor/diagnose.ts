import type { Locks } from "holdfast";

import { engineDoctorOf } from "./engines.ts";
import { levels, type Diagnosis } from "./finding.ts";
import { probe } from "./probe.ts";

/** The extent of the checks. */
export interface DiagnoseOptions {
  /** The TTL of the locks, ms, for the comparison with settings. */
  readonly ttlMs: number;
  /** How long the clocks of servers are watched, ms; 0: no watch. */
  readonly watchMs: number;
  /** Two `Locks` on the deployment, for a probe with a lock on a key of its own; undefined: the checks only read. */
  readonly probe?: readonly [Locks, Locks] | undefined;
}

/**
 * Checks the servers of a URL for risks to locks, without any change. The probe acquires a lock on a key of its own.
 * @param url a URL that `connect` has accepted
 * @param signal ends the watch of the clocks early
 * @throws {UnreachableError} if no server replies
 */
export async function diagnose(
  url: string,
  options: DiagnoseOptions,
  signal: AbortSignal,
): Promise<Diagnosis> {
  const diagnosis = await diagnoseEngine(url, options, signal);
  return {
    ...diagnosis,
    findings: diagnosis.findings.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level)),
  };
}

async function diagnoseEngine(
  url: string,
  options: DiagnoseOptions,
  signal: AbortSignal,
): Promise<Diagnosis> {
  const engine = engineDoctorOf(url);
  if (engine === undefined) {
    const { diagnoseRedis } = await import("./engines/redis.ts");
    return diagnoseRedis(url, options, signal);
  }
  const examine = await engine.load();
  const { nodes, findings } = await examine(url, {
    ttlMs: options.ttlMs,
    probes: options.probe !== undefined,
  });
  const probed = options.probe ? await probe(options.probe, undefined) : { findings: [], probe: null };
  return {
    topology: engine.name,
    nodes,
    findings: [...findings, ...probed.findings],
    probe: probed.probe,
  };
}
