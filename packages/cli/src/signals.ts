import { constants } from "node:os";

import type { ChildCommand } from "./run/command.ts";

const interrupting = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;
const forwarded = [...interrupting, "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;
/** The signals that the terminal itself sends to its foreground group. */
const fromTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/** The exit code of a process that a signal ended. */
export function exitCodeOfSignal(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}

/**
 * Handles the signals of this process. Before the command, the first signal ends the wait. During the command, all signals are forwarded.
 * After the command, the first signal ends the cleanup. A second signal without a running command ends this process at once.
 */
export class Signals implements Disposable {
  #interrupted = new AbortController();
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  #command: ChildCommand | undefined;
  /** Signals that came while the command was being started. */
  #pendingSignals: NodeJS.Signals[] | undefined;
  #inForeground = false;
  readonly #ignored: readonly NodeJS.Signals[];

  /** @param ignoresHangup whether SIGHUP has no effect, as under `nohup`, whose setting Node.js resets at its start */
  constructor(ignoresHangup = false) {
    this.#ignored = ignoresHangup ? ["SIGHUP"] : [];
    for (const name of interrupting) {
      this.#on(name, () => {
        this.#interrupt(name);
      });
    }
  }

  /** Aborted by a signal while no command runs, with the signal's name as the reason. After the command there is a new one. */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  get interruptedBy(): NodeJS.Signals | undefined {
    const { aborted, reason } = this.#interrupted.signal;
    return aborted ? (reason as NodeJS.Signals) : undefined;
  }

  /** Collects signals for the command that is about to start, so no signal is lost and none ends this process. */
  expectCommand(): void {
    this.#pendingSignals = [];
    for (const name of [...forwarded, "SIGTSTP", "SIGCONT"] as const) {
      this.#on(name, () => {
        this.#forward(name);
      });
    }
  }

  /** Forwards signals to the supervised command, whose supervision has begun. At a SIGCONT the lease is checked before the command continues. */
  forwardTo(command: ChildCommand, inForeground: boolean): void {
    this.#command = command;
    this.#inForeground = inForeground;
    this.#on("SIGCONT", () => this.#forward("SIGCONT")); // after the listener that checks the lease
    for (const name of this.#pendingSignals ?? []) {
      if (name === "SIGTSTP") command.signal("SIGSTOP"); // the terminal sent its signal before the command existed
      this.#forward(name);
    }
    this.#pendingSignals = undefined;
  }

  /** The command has ended, or could not be started. Signals end this process again. */
  stopForwarding(): void {
    if (this.#command === undefined && this.#pendingSignals === undefined) return;
    this.#command = undefined;
    this.#pendingSignals = undefined;
    this.#interrupted = new AbortController();
  }

  [Symbol.dispose](): void {
    for (const [name, handler] of this.#handlers) process.off(name, handler);
  }

  #on(name: NodeJS.Signals, action: () => void): void {
    const handler = this.#ignored.includes(name) ? () => undefined : action;
    const former = this.#handlers.get(name);
    this.#handlers.set(name, handler);
    process.on(name, handler); // before the former handler is removed, because without a handler the signal would end this process
    if (former) process.off(name, former);
  }

  #forward(name: NodeJS.Signals): void {
    if (this.#pendingSignals !== undefined && this.#command === undefined) {
      // A stop that has ended already must not begin once the command runs.
      const others = this.#pendingSignals.filter((one) => name !== "SIGCONT" || one !== "SIGTSTP");
      this.#pendingSignals = [...others, name];
    } else if (name === "SIGTSTP") {
      // While this process is stopped the lease is not renewed, so the command must be stopped as well.
      if (!this.#inForeground) this.#command?.signal("SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
    } else if (this.#command === undefined) {
      if ((interrupting as readonly string[]).includes(name)) this.#interrupt(name);
    } else if (!this.#inForeground || !fromTerminal.includes(name)) {
      this.#command.signal(name);
    }
  }

  #interrupt(name: NodeJS.Signals): void {
    if (this.#interrupted.signal.aborted) {
      process.exit(exitCodeOfSignal(name));
    }
    this.#interrupted.abort(name);
  }
}
