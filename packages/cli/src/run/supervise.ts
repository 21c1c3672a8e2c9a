import type { LeaseLostError, Lease } from "holdfast";

import { shown } from "../duration.ts";
import type { Voice } from "../output.ts";
import type { Command, Ending } from "./command.ts";

/** What happens to the command when its lease is lost, or is about to be. */
export type OnLost = "kill" | "warn" | { readonly signal: NodeJS.Signals };

export interface Supervision {
  readonly graceMs: number;
  readonly onLost: OnLost;
  readonly voice: Voice;
}

/** How it ended, and whether we ended it for the lease's sake. */
export interface Outcome {
  readonly ending: Ending;
  readonly wasStopped: boolean;
}

/** What a late timer and the kernel may take from the decision to the death of a process. */
const reactionMs = 20;
/** A machine that slept is noticed by the lease, which looks at both clocks, and by us not later than this. */
const lookEveryMs = 500;

/**
 * The command is dead before anybody else can have the lock: TERM to all of it at the deadline less the grace, KILL at the deadline,
 * or at once where the lease is lost for certain or the deadline passed while we were stopped. While renewals go well it hears
 * nothing. The deadline is the end of the lease's validity, which counts from the moment a renewal was sent.
 */
export async function supervise(lease: Lease, command: Command, options: Supervision): Promise<Outcome> {
  const watch = new Watch(lease, command, options);
  try {
    const ending = await command.ended;
    return { ending, wasStopped: watch.wasStopped };
  } finally {
    watch.end();
  }
}

class Watch {
  readonly #lease: Lease;
  readonly #command: Command;
  readonly #options: Supervision;
  #timer: NodeJS.Timeout | undefined;
  #stage: "held" | "warned" | "over" = "held";
  wasStopped = false;

  constructor(lease: Lease, command: Command, options: Supervision) {
    this.#lease = lease;
    this.#command = command;
    this.#options = options;
    lease.signal.addEventListener("abort", this.look);
    process.on("SIGCONT", this.look);
    this.look();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#lease.signal.removeEventListener("abort", this.look);
    process.off("SIGCONT", this.look);
  }

  /** Compares clocks; called by the timer, at a loss, and when we go on after we were stopped. */
  readonly look = (): void => {
    clearTimeout(this.#timer);
    const leftMs = this.#lease.remainingMs() - reactionMs;
    const { graceMs } = this.#options;
    if (leftMs <= 0) {
      this.#lost();
      return;
    }
    if (leftMs <= graceMs) {
      this.#warn(leftMs);
    }
    const untilNext = leftMs > graceMs ? leftMs - graceMs : leftMs;
    this.#timer = setTimeout(this.look, Math.min(untilNext, lookEveryMs));
  };

  #warn(leftMs: number): void {
    if (this.#stage !== "held") {
      return;
    }
    this.#stage = "warned";
    const { onLost, voice } = this.#options;
    const what = `the lease of "${this.#lease.key}" could not be renewed and ends in ${shown(leftMs)}`;
    if (onLost === "warn") {
      voice.say(what);
    } else {
      const name = onLost === "kill" ? "SIGTERM" : onLost.signal;
      this.wasStopped ||= onLost === "kill";
      voice.say(`${what}; ${name} to the command`);
      this.#send(name);
    }
  }

  #lost(): void {
    if (this.#stage === "over") {
      return;
    }
    const wasWarned = this.#stage === "warned";
    this.#stage = "over";
    const { onLost, voice } = this.#options;
    const reason = (this.#lease.signal.reason as LeaseLostError | undefined)?.reason ?? "expired";
    const what = `the lease of "${this.#lease.key}" is lost: ${reason}`;
    if (onLost === "kill") {
      this.wasStopped = true;
      voice.say(`${what}; SIGKILL to the command`);
      this.#send("SIGKILL");
    } else {
      voice.say(`${what}; the command goes on without it`);
      if (onLost !== "warn" && !wasWarned) {
        this.#send(onLost.signal);
      }
    }
  }

  #send(name: NodeJS.Signals): void {
    const failure = this.#command.signal(name);
    if (failure !== undefined) {
      this.#options.voice.say(`${name} could not be sent to the command: ${failure}`);
    }
  }
}
