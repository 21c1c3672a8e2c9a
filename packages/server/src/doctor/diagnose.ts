import { inspect } from "node:util";

import type { Locks } from "holdfast";

import { engineDoctorOf } from "./engines.ts";
import { errorMessage, UnreachableError } from "./errors.ts";
import { sortFindings, type Diagnosis } from "./finding.ts";
import { probe } from "./probe.ts";
import { redactor } from "./redact.ts";
import { parseTarget } from "./url.ts";

/** The extent of the checks. */
export interface DiagnoseOptions {
  /** The TTL of the locks, ms, for the comparison with settings. @defaultValue 30 000 */
  readonly ttlMs?: number | undefined;
  /** How long the clocks of servers are watched, ms; 0: no watch. @defaultValue 0 */
  readonly watchMs?: number | undefined;
  /** Two `Locks` on the deployment, for a probe with a lock on a key of its own. @defaultValue none; the checks only read */
  readonly probe?: readonly [Locks, Locks] | undefined;
  /** The token of a lock service, if its URL has none. */
  readonly token?: string | undefined;
  /** Ends the watch of the clocks early. */
  readonly signal?: AbortSignal | undefined;
}

/** The options with their defaults. */
export interface ResolvedOptions extends DiagnoseOptions {
  readonly ttlMs: number;
  readonly watchMs: number;
  readonly signal: AbortSignal;
}

/**
 * Checks the servers of a URL for risks to locks, without any change. The probe acquires a lock on a key of its own. Neither a finding nor
 * an error contains a secret of the URL.
 * @param url a URL that `connect` accepts, of an engine on a server or of a lock service
 * @throws {UnreachableError} if no server replies
 */
export async function diagnose(url: string, options: DiagnoseOptions = {}): Promise<Diagnosis> {
  const { ttlMs = 30_000, watchMs = 0, signal = new AbortController().signal, token } = options;
  const redact = redactor(url, token);
  try {
    const diagnosis = await diagnoseEngine(url, { ...options, ttlMs, watchMs, signal });
    const findings = diagnosis.findings.map((finding) =>
      Object.fromEntries(Object.entries(finding).map(([name, text]) => [name, redact(String(text))])),
    );
    return { ...diagnosis, findings: sortFindings(findings as unknown as Diagnosis["findings"]) };
  } catch (error) {
    // The properties of an error may contain the URL or the failed command, and so the password.
    const shown = inspect(error, { depth: null, showHidden: true });
    const isSafe = redact(shown) === shown && !shown.includes("ERR_INVALID_URL");
    throw isSafe ? error : new UnreachableError(redact(errorMessage(error)));
  }
}

/**
 * Accepts that counters of fencing tokens are more than a day ahead of the time, because the server's clock was ahead. The locks then
 * continue from their numbers. A counter that is no number, or that leaves too few numbers, stays refused.
 * @param url a URL of Redis
 * @returns the accepted counters, each with its server; undefined: the engine has no such counter
 */
export async function acceptCounters(url: string): Promise<readonly string[] | undefined> {
  if (engineDoctorOf(url) !== undefined || parseTarget(url).topology === "quorum") {
    return undefined;
  }
  const redact = redactor(url, undefined);
  try {
    const { acceptCountersOf } = await import("./engines/redis.ts");
    return await acceptCountersOf(url);
  } catch (error) {
    throw new UnreachableError(redact(errorMessage(error)));
  }
}

async function diagnoseEngine(url: string, options: ResolvedOptions): Promise<Diagnosis> {
  const engine = engineDoctorOf(url);
  if (engine === undefined) {
    const { diagnoseRedis } = await import("./engines/redis.ts");
    return diagnoseRedis(url, options);
  }
  const examine = await engine.load();
  const { nodes, findings } = await examine(url, options);
  const probed = options.probe ? await probe(options.probe, undefined) : { findings: [], probe: null };
  return {
    topology: engine.name,
    nodes,
    findings: [...findings, ...probed.findings],
    probe: probed.probe,
  };
}
