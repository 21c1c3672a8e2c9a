import { setTimeout as pause } from "node:timers/promises";

import type { LeaseLostError, Lease } from "holdfast";

import { formatDuration } from "../duration.ts";
import { errorMessage, type Output } from "../output.ts";
import type { ChildCommand, ExitStatus } from "./command.ts";

/** The action on the command when its lease is lost, or is about to be lost. */
export type OnLost = "kill" | "warn" | { readonly signal: NodeJS.Signals };

export interface Supervision {
  readonly graceMs: number;
  readonly maxHoldMs: number;
  /** The end of the maximum hold time, on the scale of `performance.now()`. */
  readonly holdUntil: number;
  readonly onLost: OnLost;
  readonly voice: Output;
  /** The loss in words, with what the engine knows about it. */
  readonly describeLoss: (loss: LeaseLostError | undefined) => string | Promise<string>;
}

/** The end of the command, and whether the command was ended because of the lease or the maximum hold time. */
export interface CommandOutcome {
  readonly exitStatus: ExitStatus;
  readonly wasStopped: boolean;
  /** When the remaining processes of a stopped command get KILL, on the scale of `performance.now()`. */
  readonly killAt: number;
}

/** The time from the decision to the death of a process, for late timers and the kernel, ms. */
export const reactionMs = 20;
/** The longest time between two checks of the clocks, ms. A check detects that the machine slept. */
const checkEveryMs = 500;

/**
 * The command is dead before the lease ends. All its processes get TERM at the deadline less the grace, and KILL at
 * the deadline. They get KILL at once if the lease is certainly lost, or if the deadline passed while this process was stopped. While
 * renewals succeed no signal is sent. The deadline is the end of the lease's validity, counted from the sending of the last renewal.
 * At the end of the maximum hold time the processes get TERM, and KILL after the grace. The lease is renewed during that grace.
 */
export async function supervise(
  lease: Lease,
  command: ChildCommand,
  options: Supervision,
): Promise<CommandOutcome> {
  const watch = new LeaseWatch(lease, command, options);
  try {
    const exitStatus = await command.ended;
    watch.end();
    await watch.reported;
    return { exitStatus, wasStopped: watch.wasStopped, killAt: watch.killAt };
  } finally {
    watch.end();
  }
}

/** The loss as the library declares it, after the signal to the command. @returns undefined if the lease was renewed in between */
async function lossOf(lease: Lease): Promise<LeaseLostError | undefined> {
  await pause(Math.ceil(lease.remainingMs()));
  try {
    lease.throwIfLost();
    return undefined;
  } catch (error) {
    return error as LeaseLostError;
  }
}

class LeaseWatch {
  readonly #lease: Lease;
  readonly #command: ChildCommand;
  readonly #options: Supervision;
  #timer: NodeJS.Timeout | undefined;
  #wasWarned = false;
  #isAtMaximum = false;
  #isOver = false;
  wasStopped = false;
  killAt = Infinity;
  /** Resolves when the loss has been printed. */
  reported: Promise<void> | undefined;

  constructor(lease: Lease, command: ChildCommand, options: Supervision) {
    this.#lease = lease;
    this.#command = command;
    this.#options = options;
    lease.signal.addEventListener("abort", this.check);
    process.on("SIGCONT", this.check);
    this.check();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#lease.signal.removeEventListener("abort", this.check);
    process.off("SIGCONT", this.check);
  }

  /** Compares the clocks. The timer, a loss, and a continuation after a stop call this function. */
  readonly check = (): void => {
    clearTimeout(this.#timer);
    const remainingMs = this.#lease.remainingMs() - reactionMs;
    const { graceMs, holdUntil } = this.#options;
    const untilMaximum = holdUntil - performance.now();
    if (this.#isOver) {
      return;
    } else if (remainingMs <= 0) {
      this.#lost();
      return;
    }
    if (untilMaximum <= 0) {
      this.#maximumReached();
    }
    if (untilMaximum + graceMs <= 0) {
      this.#maximumExceeded();
      return;
    }
    if (remainingMs <= graceMs) {
      this.#warn(remainingMs);
    }
    const untilNext = remainingMs > graceMs ? remainingMs - graceMs : remainingMs;
    const untilLimit = untilMaximum > 0 ? untilMaximum : untilMaximum + graceMs;
    this.#timer = setTimeout(this.check, Math.min(untilNext, untilLimit, checkEveryMs));
  };

  #warn(remainingMs: number): void {
    if (!this.#wasWarned) {
      this.#wasWarned = true;
      const ends = `could not be renewed and ends in ${formatDuration(remainingMs)}`;
      this.#requestEnd(`the lease of "${this.#lease.key}" ${ends}`, remainingMs);
    }
  }

  #maximumReached(): void {
    if (!this.#isAtMaximum) {
      this.#isAtMaximum = true;
      const { maxHoldMs, graceMs, onLost } = this.#options;
      const release = onLost === "kill" ? "" : ` and is released in ${formatDuration(graceMs)}`;
      const held = `has been held for --max-hold ${formatDuration(maxHoldMs)}`;
      this.#requestEnd(`"${this.#lease.key}" ${held}${release}`, graceMs);
    }
  }

  /** Asks the command to end, and prints the reason. */
  #requestEnd(why: string, withinMs: number): void {
    const { onLost, voice: output } = this.#options;
    if (onLost === "warn") {
      output.info(why);
      return;
    }
    const name = onLost === "kill" ? "SIGTERM" : onLost.signal;
    if (onLost === "kill") {
      this.wasStopped = true;
      this.killAt = Math.min(this.killAt, performance.now() + withinMs);
    }
    this.#send(name);
    output.info(`${why}; ${name} to the command`);
  }

  /** The grace after the maximum hold time has ended. */
  #maximumExceeded(): void {
    this.#isOver = true;
    const { onLost, graceMs, voice: output } = this.#options;
    if (onLost === "kill") {
      this.killAt = 0;
      this.#send("SIGKILL");
      output.info(`the command has not ended within ${formatDuration(graceMs)}; SIGKILL to the command`);
      return;
    }
    this.#lease.release().catch((error: unknown) => {
      output.info(`the lock "${this.#lease.key}" could not be released: ${errorMessage(error)}`);
    });
    output.info(`the lock "${this.#lease.key}" is released; the command goes on without it`);
  }

  #lost(): void {
    this.#isOver = true;
    const { onLost } = this.#options;
    const wasNotified = this.#wasWarned || this.#isAtMaximum;
    if (onLost === "kill") {
      this.wasStopped = true;
      this.killAt = 0;
      this.#send("SIGKILL");
    } else if (onLost !== "warn" && !wasNotified) {
      this.#send(onLost.signal);
    }
    const effect = onLost === "kill" ? "SIGKILL to the command" : "the command goes on without it";
    this.reported = this.#reportLoss(effect);
  }

  async #reportLoss(effect: string): Promise<void> {
    const { describeLoss, voice: output } = this.#options;
    const loss = await describeLoss(await lossOf(this.#lease));
    output.info(`the lease of "${this.#lease.key}" is lost: ${loss}; ${effect}`);
  }

  #send(name: NodeJS.Signals): void {
    const failure = this.#command.signal(name);
    if (failure !== undefined) {
      this.#options.voice.info(`${name} could not be sent to the command: ${failure}`);
    }
  }
}
