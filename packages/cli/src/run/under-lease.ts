import type { Lease } from "holdfast";

import { shown } from "../duration.ts";
import { exits } from "../exit.ts";
import { exitCodeOfSignal, type Signals } from "../signals.ts";
import { wordsOf, type Voice } from "../output.ts";
import { startCommand, type Command, type Ending } from "./command.ts";
import { environmentOf } from "./environment.ts";
import { startGuard } from "./guard.ts";
import type { RunOptions } from "./run.ts";
import { supervise, type Outcome } from "./supervise.ts";
import { waitUnless } from "./wait-unless.ts";

/** Runs the command under a lease, which is given back after it. Answers the exit code. */
export async function runUnder(lease: Lease, options: RunOptions, signals: Signals): Promise<number> {
  const grantedAt = performance.now();
  const outcome = await runCommand(lease, options, signals);
  if (outcome.wasStopped) {
    return exits.lost;
  }
  const { keepForMs } = options;
  if (keepForMs !== undefined && "code" in outcome.ending && outcome.ending.code === exits.done) {
    const isKept = await leaveFor(lease, keepForMs - (performance.now() - grantedAt), options);
    return isKept || options.onLost !== "kill" ? exits.done : lostBefore(lease, options);
  }
  const restMs = options.minHoldMs - (performance.now() - grantedAt);
  const wasHeldLongEnough = await waitUnless(restMs, signals.interrupted);
  const isOurs = wasHeldLongEnough
    ? await giveBack(lease, options.voice, signals.interrupted)
    : await leaveFor(lease, options.minHoldMs - (performance.now() - grantedAt), options);
  if (!isOurs && options.onLost === "kill") {
    return lostBefore(lease, options);
  }
  return codeOf(outcome.ending);
}

function lostBefore(lease: Lease, { voice }: RunOptions): number {
  voice.say(`the lease of "${lease.key}" had been lost before the command ended`);
  return exits.lost;
}

/** Also where it could not be started the lock is released. */
async function runCommand(lease: Lease, options: RunOptions, signals: Signals): Promise<Outcome> {
  const { program, args, inForeground } = options;
  using guard = startGuard();
  let command: Command;
  try {
    signals.interrupted.throwIfAborted();
    lease.throwIfLost(); // we may have been stopped since the grant
    signals.expectCommand();
    const env = environmentOf(lease);
    command = await startCommand({ program, args, inForeground, env, began: guard.watch });
  } catch (error) {
    signals.stopForwarding();
    await giveBack(lease, options.voice, signals.interrupted);
    throw error;
  }
  const killAtExit = (): void => void command.signal("SIGKILL");
  process.once("exit", killAtExit);
  const supervised = supervise(lease, command, options);
  signals.forwardTo(command, inForeground);
  options.voice.detail(`the command runs, process ${Math.abs(command.target)}`);
  try {
    const outcome = await supervised;
    const wasLeftRunning = await endWhatIsLeft(command, lease, options, outcome.wasStopped);
    return { ...outcome, wasStopped: outcome.wasStopped || wasLeftRunning };
  } finally {
    signals.stopForwarding();
    command.forget();
    process.off("exit", killAtExit);
  }
}

const leftLookMs = 20;

/**
 * A lock is not given back while something works under it: what the command left in its group is ended, TERM first.
 * @returns whether the lease was lost meanwhile
 */
async function endWhatIsLeft(
  command: Command,
  lease: Lease,
  { graceMs, onLost, voice }: RunOptions,
  wasStopped: boolean,
): Promise<boolean> {
  if (wasStopped) {
    command.signal("SIGKILL");
    return true;
  }
  if (!(await command.isAlive())) {
    return false;
  }
  voice.say("the command left processes behind; they are ended before the lock is released");
  command.signal("SIGTERM");
  const killAt = performance.now() + graceMs;
  while (await command.isAlive()) {
    if (performance.now() > killAt || lease.remainingMs() === 0) {
      command.signal("SIGKILL");
      break;
    }
    await waitUnless(leftLookMs, lease.signal);
  }
  return onLost === "kill" && lease.remainingMs() === 0;
}

/** Answers whether it was ours. Where the engine cannot be reached, the lock ends with its TTL, and it was ours as far as we know. */
function giveBack(lease: Lease, voice: Voice, interrupted: AbortSignal): Promise<boolean> {
  const remainingMs = lease.remainingMs();
  const released = lease.release().catch((error: unknown) => {
    voice.say(
      `the lock "${lease.key}" could not be released (${wordsOf(error)}); it ends by itself in ${shown(remainingMs)}`,
    );
    return remainingMs > 0;
  });
  const stopped = new Promise<boolean>((resolve) => {
    interrupted.addEventListener("abort", () => resolve(remainingMs > 0), { once: true });
  });
  return interrupted.aborted ? released : Promise.race([released, stopped]);
}

/** The lock stays, without us, until its time is over. Answers whether it was ours, as far as we know. */
async function leaveFor(lease: Lease, ms: number, { voice }: RunOptions): Promise<boolean> {
  let isOurs = lease.remainingMs() > 0;
  try {
    if (ms > lease.remainingMs()) {
      await lease.extend(Math.ceil(ms));
    }
  } catch (error) {
    isOurs &&= (error as { code?: unknown }).code !== "lease-lost";
    voice.say(`the lock "${lease.key}" could not be kept for ${shown(ms)} more: ${wordsOf(error)}`);
  }
  lease.orphan();
  return isOurs;
}

function codeOf(ending: Ending): number {
  return "code" in ending ? ending.code : exitCodeOfSignal(ending.signal);
}
