import type { Engine, Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { table } from "../inspect/table.ts";
import { errorMessage } from "../output.ts";
import { withEngine } from "../with-engine.ts";

export interface BenchOptions {
  readonly target: Target;
  readonly workers: number;
  readonly keys: number;
  readonly holdMs: number;
  readonly ttlMs: number;
  readonly forMs: number;
  readonly json: boolean;
}

/** The measured figures. */
interface Figures {
  readonly seconds: number;
  readonly acquired: number;
  readonly perSecond: number;
  readonly waitMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** The fewest and the most grants of one worker. */
  readonly perWorker: { readonly least: number; readonly most: number };
  readonly failures: number;
  readonly firstFailure: string | null;
  /** How often two workers held one key at the same time. Any value but 0 is a defect. */
  readonly overlaps: number;
}

/** Measures an engine from this machine. Workers of this process acquire and release locks as fast as possible. */
export function bench(options: BenchOptions): Promise<number> {
  return withEngine(options.target, undefined, async (engine, interrupted) => {
    const figures = await measure(engine, options, interrupted);
    process.stdout.write(
      `${options.json ? JSON.stringify({ version: 1, ...figures }) : formatFigures(figures)}\n`,
    );
    return figures.overlaps === 0 ? exitCodes.done : exitCodes.criticalFindings;
  });
}

async function measure(engine: Engine, options: BenchOptions, interrupted: AbortSignal): Promise<Figures> {
  const run = crypto.randomUUID();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), options.forMs);
  const signal = AbortSignal.any([interrupted, over.signal]);
  const tally = { waits: [] as number[], failures: 0, firstFailure: null as string | null, overlaps: 0 };
  const held = new Set<string>();
  const startedAt = performance.now();
  const work = async (worker: number): Promise<number> => {
    let count = 0;
    for (; !signal.aborted;) {
      const key = `holdfast-bench:${run}:${(worker + count) % options.keys}`;
      count += await runOnce(engine, { ...options, key, signal, held, tally });
    }
    return count;
  };
  const counts = await Promise.all(Array.from({ length: options.workers }, (_, worker) => work(worker)));
  clearTimeout(timer);
  const seconds = (performance.now() - startedAt) / 1_000;
  const waits = tally.waits.sort((a, b) => a - b);
  const at = (part: number): number =>
    waits[Math.min(waits.length - 1, Math.floor(waits.length * part))] ?? 0;
  return {
    seconds,
    acquired: waits.length,
    perSecond: waits.length / seconds,
    waitMs: { p50: at(0.5), p99: at(0.99), max: at(1) },
    perWorker: { least: Math.min(...counts), most: Math.max(...counts) },
    failures: tally.failures,
    firstFailure: tally.firstFailure,
    overlaps: tally.overlaps,
  };
}

interface WorkerTurn {
  readonly key: string;
  readonly ttlMs: number;
  readonly holdMs: number;
  readonly signal: AbortSignal;
  readonly held: Set<string>;
  readonly tally: { waits: number[]; failures: number; firstFailure: string | null; overlaps: number };
}

const pauseAfterFailureMs = 50;

/** @returns the number of acquired locks: 1 or 0 */
async function runOnce(
  { locks }: Engine,
  { key, ttlMs, holdMs, signal, held, tally }: WorkerTurn,
): Promise<number> {
  const requestedAt = performance.now();
  try {
    const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity, signal });
    tally.waits.push(performance.now() - requestedAt);
    if (held.has(key) && lease.remainingMs() > 0) tally.overlaps += 1;
    held.add(key);
    if (holdMs > 0) await new Promise((resolve) => setTimeout(resolve, holdMs));
    held.delete(key);
    await lease.release();
    return 1;
  } catch (error) {
    if (!signal.aborted) {
      tally.failures += 1;
      tally.firstFailure ??= errorMessage(error);
      await new Promise((resolve) => setTimeout(resolve, pauseAfterFailureMs));
    }
    return 0;
  }
}

function formatFigures(figures: Figures): string {
  const { seconds, acquired, perSecond, waitMs, perWorker, failures, firstFailure, overlaps } = figures;
  const ms = (value: number): string => `${value.toFixed(2)} ms`;
  return table([
    ["acquired", `${acquired} in ${seconds.toFixed(1)} s: ${perSecond.toFixed(0)} a second`],
    ["wait", `half within ${ms(waitMs.p50)}, 99 % within ${ms(waitMs.p99)}, the longest ${ms(waitMs.max)}`],
    ["fairness", `from ${perWorker.least} to ${perWorker.most} for a worker`],
    ["failures", failures === 0 ? "none" : `${failures}, the first: ${firstFailure}`],
    ["two holders", overlaps === 0 ? "never" : `${overlaps} TIMES`],
  ]);
}
