import {
  acceptCounters,
  diagnose,
  isAtLeast,
  UnreachableError,
  type Diagnosis,
  type Level,
} from "@holdfast/server/doctor";

import { openEngine, urlOf, type Engine, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { Signals } from "../signals.ts";
import { report } from "./report.ts";

/** The extent of the checks. */
interface Checks {
  readonly target: Target;
  readonly ttlMs: number;
  readonly watchMs: number;
  readonly probes: boolean;
}

export interface DoctorOptions extends Checks {
  /** Whether counters that are more than a day ahead of the time are accepted first. */
  readonly acceptsCounters: boolean;
  readonly failOn: Level | "never";
  readonly json: boolean;
  /** Whether only the findings are printed. */
  readonly isQuiet: boolean;
}

/**
 * Checks a deployment for risks to locks, without any change, except that it accepts counters first if that was requested. The probe
 * acquires a lock on a key of its own.
 * @returns 0; with a finding of level `failOn` or worse 1, or 2 for a critical one
 */
export async function doctor(options: DoctorOptions): Promise<number> {
  using signals = new Signals();
  if (options.acceptsCounters) {
    await accept(options.target);
  }
  const diagnosis = await diagnoseTarget(options, signals.interrupted);
  process.stdout.write(
    options.json ? `${JSON.stringify({ version: 1, ...diagnosis })}\n` : report(diagnosis, options.isQuiet),
  );
  const [worst] = diagnosis.findings;
  if (worst === undefined || options.failOn === "never" || !isAtLeast(worst.level, options.failOn)) {
    return exitCodes.done;
  }
  return worst.level === "critical" ? exitCodes.criticalFindings : exitCodes.findings;
}

/** Accepts counters, and prints their names on stderr. */
async function accept(target: Target): Promise<void> {
  const accepted = await acceptCounters(urlOf(target)).catch((error: unknown) => {
    throw error instanceof UnreachableError ? new Exit(exitCodes.unavailable, error.message, error) : error;
  });
  if (accepted === undefined) {
    throw new Exit(exitCodes.usage, "--accept-counter needs the URL of a Redis, a Sentinel or a cluster");
  }
  const lines = accepted.map((counter) => `accepted the counter ${counter}`);
  process.stderr.write(
    `holdfast: ${lines.length === 0 ? "no counter was refused for its lead alone" : lines.join("; ")}\n`,
  );
}

/** The findings. Rejects with an `Exit` if no server can be asked. */
async function diagnoseTarget(
  { target, ttlMs, watchMs, probes }: Checks,
  signal: AbortSignal,
): Promise<Diagnosis> {
  const url = urlOf(target);
  const engines: Engine[] = [];
  try {
    // The library comes first, because it refuses an invalid URL with the reason.
    const engine = await openEngine(target);
    engines.push(engine);
    const other = probes ? await openEngine(target) : undefined;
    if (other) engines.push(other);
    return await diagnose(url, {
      ttlMs,
      watchMs,
      signal,
      token: process.env["HOLDFAST_TOKEN"],
      probe: other && [engine.locks, other.locks],
    });
  } catch (error) {
    throw error instanceof UnreachableError ? new Exit(exitCodes.unavailable, error.message, error) : error;
  } finally {
    await Promise.all(engines.map(({ locks }) => locks.close()));
  }
}
