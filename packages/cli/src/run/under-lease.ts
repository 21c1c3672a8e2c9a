import { setTimeout as pause } from "node:timers/promises";

import type { Lease } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Engine } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { exitCodeOfSignal, type Signals } from "../signals.ts";
import { errorMessage, type Output } from "../output.ts";
import { BackgroundStream } from "./background-stream.ts";
import { startCommand, type ChildCommand, type ExitStatus } from "./command.ts";
import { environmentOf } from "./environment.ts";
import { startGuard } from "./guard.ts";
import type { RunOptions } from "./run.ts";
import { describeLoss, watchLosses } from "./loss.ts";
import { keepUntil } from "./once.ts";
import { reactionMs, supervise, type CommandOutcome } from "./supervise.ts";
import { waitUnless } from "./wait-unless.ts";

/** The lease of the command, and its engine. */
interface Held {
  readonly engine: Engine;
  readonly lease: Lease;
  /** On the scale of `performance.now()`. */
  readonly grantedAt: number;
}

/** Runs the command under a lease, then releases the lease. @returns the exit code */
export async function runUnder(
  engine: Engine,
  lease: Lease,
  options: RunOptions,
  signals: Signals,
): Promise<number> {
  const stream = new BackgroundStream();
  try {
    return await holdAndRun(engine, lease, { ...options, voice: options.voice.through(stream) }, signals);
  } finally {
    await stream.end();
  }
}

async function holdAndRun(
  engine: Engine,
  lease: Lease,
  options: RunOptions,
  signals: Signals,
): Promise<number> {
  const grantedAt = performance.now();
  const outcome = await runCommand({ engine, lease, grantedAt }, options, signals);
  if (outcome.wasStopped) {
    return exitCodes.lost;
  }
  const { keepForMs } = options;
  if (keepForMs !== undefined && "code" in outcome.exitStatus && outcome.exitStatus.code === exitCodes.done) {
    const period = { periodMs: keepForMs, until: grantedAt + keepForMs };
    const outer = { voice: options.voice, interrupted: signals.interrupted };
    const isKept = await keepUntil(engine.locks, lease, period, outer);
    return isKept || options.onLost !== "kill" ? exitCodes.done : lostBefore(lease, options);
  }
  const restMs = options.minHoldMs - (performance.now() - grantedAt);
  const wasHeldLongEnough = await waitUnless(restMs, signals.interrupted);
  const isHeld = wasHeldLongEnough
    ? await releaseLease(lease, options.voice, signals.interrupted)
    : await keepFor(lease, options.minHoldMs - (performance.now() - grantedAt), options);
  if (!isHeld && options.onLost === "kill") {
    return lostBefore(lease, options);
  }
  return exitCodeFor(outcome.exitStatus);
}

function lostBefore(lease: Lease, { voice: output }: RunOptions): number {
  output.info(`the lease of "${lease.key}" had been lost before the command ended`);
  return exitCodes.lost;
}

/** Runs the command. The lock is released even if the command could not be started. */
async function runCommand(held: Held, options: RunOptions, signals: Signals): Promise<CommandOutcome> {
  const { engine, lease, grantedAt } = held;
  const { program, args, inForeground, maxHoldMs } = options;
  using guard = startGuard();
  let command: ChildCommand;
  try {
    signals.interrupted.throwIfAborted();
    signals.expectCommand();
    const env = environmentOf(lease);
    lease.throwIfLost(); // this process may have been stopped since the grant
    command = await startCommand({ program, args, inForeground, env, began: guard.watch });
  } catch (error) {
    signals.stopForwarding();
    await releaseLease(lease, options.voice, signals.interrupted);
    throw error;
  }
  const killAtExit = (): void => void command.signal("SIGKILL");
  process.once("exit", killAtExit);
  process.prependListener("uncaughtException", killAtExit); // before the message about the error, which may block
  using _watching = watchLosses(engine, lease, options.ttlMs);
  const supervision = supervise(lease, command, {
    ...options,
    holdUntil: grantedAt + maxHoldMs,
    describeLoss: (loss) => describeLoss(engine.locks, lease, loss),
  });
  signals.forwardTo(command, inForeground);
  options.voice.detail(`the command runs, process ${Math.abs(command.target)}`);
  try {
    const outcome = await supervision;
    const wasLeftRunning = await terminateRemaining(command, lease, options, outcome);
    return { ...outcome, wasStopped: outcome.wasStopped || wasLeftRunning };
  } finally {
    signals.stopForwarding();
    command.forget();
    process.off("exit", killAtExit);
    process.off("uncaughtException", killAtExit);
  }
}

const groupCheckMs = 20;

/**
 * Ends the remaining processes of the command's group before the release, TERM first, so no process works under a released lock.
 * @returns whether the lease was lost before their end
 */
async function terminateRemaining(
  command: ChildCommand,
  lease: Lease,
  { graceMs, onLost, voice: output }: RunOptions,
  { wasStopped, killAt: stopAt }: CommandOutcome,
): Promise<boolean> {
  if (!(await command.isAlive())) {
    return false;
  }
  if (!wasStopped) {
    command.signal("SIGTERM");
    output.info("the command left running processes, which are ended before the release");
  }
  const killAt = Math.min(stopAt, performance.now() + graceMs);
  const isLost = (): boolean => onLost === "kill" && lease.remainingMs() <= reactionMs;
  while (await command.isAlive()) {
    if (performance.now() >= killAt || isLost()) {
      command.signal("SIGKILL");
      break;
    }
    await pause(groupCheckMs);
  }
  return onLost === "kill" && lease.remainingMs() === 0;
}

/**
 * @returns whether the lease was held until the release. If the engine is unreachable, the lock ends with its TTL, and the result is true.
 */
function releaseLease(lease: Lease, output: Output, interrupted: AbortSignal): Promise<boolean> {
  const remainingMs = lease.remainingMs();
  const released = lease.release().catch((error: unknown) => {
    output.info(
      `the lock "${lease.key}" could not be released (${errorMessage(error)}); the lock ends in ${formatDuration(remainingMs)}`,
    );
    return remainingMs > 0;
  });
  const stopped = new Promise<boolean>((resolve) => {
    interrupted.addEventListener("abort", () => resolve(remainingMs > 0), { once: true });
  });
  return interrupted.aborted ? released : Promise.race([released, stopped]);
}

/** Leaves the lock held, without this process, until its time has passed. @returns whether the lease was held, as far as known */
async function keepFor(lease: Lease, ms: number, { voice: output }: RunOptions): Promise<boolean> {
  let isHeld = lease.remainingMs() > 0;
  try {
    if (ms > lease.remainingMs()) {
      await lease.extend(Math.ceil(ms));
    }
  } catch (error) {
    isHeld &&= (error as { code?: unknown }).code !== "lease-lost";
    output.info(
      `the lock "${lease.key}" could not be kept for ${formatDuration(ms)} more: ${errorMessage(error)}`,
    );
  }
  lease.orphan();
  return isHeld;
}

function exitCodeFor(exitStatus: ExitStatus): number {
  return "code" in exitStatus ? exitStatus.code : exitCodeOfSignal(exitStatus.signal);
}
