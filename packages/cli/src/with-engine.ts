import { exitCodes } from "./exit.ts";
import { openEngine, type Engine, type Target } from "./engine.ts";
import { exitCodeOfSignal, Signals } from "./signals.ts";

/**
 * Runs `work` with an engine, and always closes the engine. A signal ends the wait and releases an incoming grant.
 * @returns the exit code of `work`, or of the signal
 */
export async function withEngine(
  target: Target,
  owner: string | undefined,
  work: (engine: Engine, interrupted: AbortSignal) => Promise<number>,
): Promise<number> {
  // A closed reader of stdout, such as `head`, is no error.
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
