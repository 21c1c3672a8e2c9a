import type { LeaseLostError, Lease } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Output } from "../output.ts";
import type { ChildCommand, ExitStatus } from "./command.ts";

/** What happens to the command when its lease is lost, or is about to be. */
export type OnLost = "kill" | "warn" | { readonly signal: NodeJS.Signals };

export interface Supervision {
  readonly graceMs: number;
  readonly onLost: OnLost;
  readonly voice: Output;
}

/** How it ended, and whether we ended it for the lease's sake. */
export interface CommandOutcome {
  readonly exitStatus: ExitStatus;
  readonly wasStopped: boolean;
}

/** What a late timer and the kernel may take from the decision to the death of a process. */
const reactionMs = 20;
/** A machine that slept is noticed by the lease, which looks at both clocks, and by us not later than this. */
const checkEveryMs = 500;

/**
 * The command is dead before anybody else can have the lock: TERM to all of it at the deadline less the grace, KILL at the deadline,
 * or at once where the lease is lost for certain or the deadline passed while we were stopped. While renewals go well it hears
 * nothing. The deadline is the end of the lease's validity, which counts from the moment a renewal was sent.
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

  /** Compares clocks; called by the timer, at a loss, and when we go on after we were stopped. */
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
