import { formatDuration } from "../duration.ts";
import { openEngine, type Engine, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { acquire, type AcquireSpec } from "./acquire.ts";
import { heldMessage } from "./held.ts";
import { minPeriodMs } from "./period.ts";
import { refuseNested } from "./environment.ts";
import { exitCodeOfSignal, Signals } from "../signals.ts";
import type { OnLost } from "./supervise.ts";

/** The validated options of `run`. */
export interface RunOptions extends AcquireSpec {
  readonly maxHoldMs: number;
  readonly target: Target;
  readonly program: string;
  readonly args: readonly string[];
  readonly heldExit: number;
  /** False with `--if-held skip` and `fail`, where `--wait` has no effect. */
  readonly mayWait: boolean;
  readonly minHoldMs: number;
  /** After a success the lock stays, without this process, until this time after the grant, ms. */
  readonly keepForMs?: number;
  readonly graceMs: number;
  readonly onLost: OnLost;
  readonly inForeground: boolean;
  /** Whether the run goes on after its terminal has closed. */
  readonly nohup: boolean;
  readonly voice: Output;
}

/**
 * Runs a command under a lock. No other client holds the lock while the command runs, because the command is ended before its lease.
 * @returns the exit code; the command's own code if the command ended under the lock
 */
export async function run(options: RunOptions): Promise<number> {
  refuseNested(options.keys);
  using signals = new Signals(options.nohup);
  const engine = await openEngine(options.target, options.owner);
  try {
    assertTtl(options.keepForMs, engine);
    const lease = await acquire(engine, options, { voice: options.voice, interrupted: signals.interrupted });
    if (lease === null) {
      await explainHeld(engine, options);
      return options.heldExit;
    }
    // This code is loaded only after the grant, so a refused request ends sooner.
    const { runUnder } = await import("./under-lease.ts");
    return await runUnder(engine, lease, options, signals);
  } catch (error) {
    if (signals.interruptedBy !== undefined) {
      return exitCodeOfSignal(signals.interruptedBy);
    }
    throw error;
  } finally {
    // Releases a grant that arrived during a signal.
    await engine.locks.close();
  }
}

function assertTtl(keepForMs: number | undefined, { driver }: Engine): void {
  const { maxTtlMs } = driver.capabilities;
  if (keepForMs !== undefined && (keepForMs < minPeriodMs || keepForMs > maxTtlMs)) {
    throw new Exit(
      exitCodes.usage,
      `--for can be from ${formatDuration(minPeriodMs)} to ${formatDuration(maxTtlMs)} with this engine, got ${formatDuration(keepForMs)}`,
    );
  }
}

async function explainHeld({ locks }: Engine, options: RunOptions): Promise<void> {
  const { keys, keepForMs, voice: output } = options;
  if (output.isQuiet) {
    return;
  } else if (keepForMs === undefined) {
    output.info(await heldMessage(locks, options));
    return;
  }
  const { ranMessage } = await import("./once.ts");
  output.info(await ranMessage(locks, keys));
}
