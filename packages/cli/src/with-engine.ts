import { exitCodes } from "./exit.ts";
import { openEngine, type Engine, type Target } from "./engine.ts";
import { exitCodeOfSignal, Signals } from "./signals.ts";

/**
 * Does something with an engine, which is closed in every case: what is asked for when a signal comes is given back.
 * @returns the exit code: what `work` says, or that of the signal
 */
export async function withEngine(
  target: Target,
  owner: string | undefined,
  work: (engine: Engine, interrupted: AbortSignal) => Promise<number>,
): Promise<number> {
  // A reader who went away, as `head` does, is no fault.
  process.stdout.on("error", () => process.exit(exitCodes.done));
  using signals = new Signals();
  const engine = await openEngine(target, owner);
  try {
    const code = await work(engine, signals.interrupted);
    return signals.interruptedBy === undefined ? code : exitCodeOfSignal(signals.interruptedBy);
  } catch (error) {
    if (signals.interruptedBy !== undefined) {
      return exitCodeOfSignal(signals.interruptedBy);
    }
    throw error;
  } finally {
    await engine.locks.close();
  }
}
