import type { LeaseLostError, Lease } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Output } from "../output.ts";
import type { ChildCommand, ExitStatus } from "./command.ts";

/** The action on the command when its lease is lost, or is about to be lost. */
export type OnLost = "kill" | "warn" | { readonly signal: NodeJS.Signals };

export interface Supervision {
  readonly graceMs: number;
  readonly onLost: OnLost;
  readonly voice: Output;
}

/** The end of the command, and whether the command was ended because of the lease. */
export interface CommandOutcome {
  readonly exitStatus: ExitStatus;
  readonly wasStopped: boolean;
}

/** The time from the decision to the death of a process, for late timers and the kernel, ms. */
const reactionMs = 20;
/** The longest time between two checks of the clocks, ms. A check detects that the machine slept. */
const checkEveryMs = 500;

/**
 * The command is dead before the lease ends. All its processes get TERM at the deadline less the grace, and KILL at
 * the deadline. They get KILL at once if the lease is certainly lost, or if the deadline passed while this process was stopped. While
 * renewals succeed no signal is sent. The deadline is the end of the lease's validity, counted from the sending of the last renewal.
 */
export async function supervise(
  lease: Lease,
  command: ChildCommand,
  options: Supervision,
): Promise<CommandOutcome> {
  const watch = new LeaseWatch(lease, command, options);
  try {
    const exitStatus = await command.ended;
    return { exitStatus, wasStopped: watch.wasStopped };
  } finally {
    watch.end();
  }
}

class LeaseWatch {
  readonly #lease: Lease;
  readonly #command: ChildCommand;
  readonly #options: Supervision;
  #timer: NodeJS.Timeout | undefined;
  #stage: "held" | "warned" | "over" = "held";
  wasStopped = false;

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
    const { graceMs } = this.#options;
    if (remainingMs <= 0) {
      this.#lost();
      return;
    }
    if (remainingMs <= graceMs) {
      this.#warn(remainingMs);
    }
    const untilNext = remainingMs > graceMs ? remainingMs - graceMs : remainingMs;
    this.#timer = setTimeout(this.check, Math.min(untilNext, checkEveryMs));
  };

  #warn(remainingMs: number): void {
    if (this.#stage !== "held") {
      return;
    }
    this.#stage = "warned";
    const { onLost, voice: output } = this.#options;
    const what = `the lease of "${this.#lease.key}" could not be renewed and ends in ${formatDuration(remainingMs)}`;
    if (onLost === "warn") {
      output.info(what);
    } else {
      const name = onLost === "kill" ? "SIGTERM" : onLost.signal;
      this.wasStopped ||= onLost === "kill";
      output.info(`${what}; ${name} to the command`);
      this.#send(name);
    }
  }

  #lost(): void {
    if (this.#stage === "over") {
      return;
    }
    const wasWarned = this.#stage === "warned";
    this.#stage = "over";
    const { onLost, voice: output } = this.#options;
    const reason = (this.#lease.signal.reason as LeaseLostError | undefined)?.reason ?? "expired";
    const what = `the lease of "${this.#lease.key}" is lost: ${reason}`;
    if (onLost === "kill") {
      this.wasStopped = true;
      output.info(`${what}; SIGKILL to the command`);
      this.#send("SIGKILL");
    } else {
      output.info(`${what}; the command goes on without it`);
      if (onLost !== "warn" && !wasWarned) {
        this.#send(onLost.signal);
      }
    }
  }

  #send(name: NodeJS.Signals): void {
    const failure = this.#command.signal(name);
    if (failure !== undefined) {
      this.#options.voice.info(`${name} could not be sent to the command: ${failure}`);
    }
  }
}
