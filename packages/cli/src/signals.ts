import { constants } from "node:os";

import type { ChildCommand } from "./run/command.ts";

const interrupting = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;
const forwarded = [...interrupting, "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;
/** What the terminal sends to the whole of its foreground group by itself. */
const fromTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/** The exit code of who was ended by a signal. */
export function exitCodeOfSignal(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}

/**
 * What becomes of the signals that we get. Before the command runs, the first one ends the waiting; while it runs, all go to it;
 * after it, the first one ends our tidying up. A second one while nothing runs ends us at once.
 */
export class Signals implements Disposable {
  #interrupted = new AbortController();
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  #command: ChildCommand | undefined;
  /** Signals that came while the command was being started. */
  #pendingSignals: NodeJS.Signals[] | undefined;
  #inForeground = false;

  constructor() {
    for (const name of interrupting) {
      this.#on(name, () => {
        this.#interrupt(name);
      });
    }
  }

  /** Aborted by a signal that came while no command ran; its reason is the signal's name. Before and after the command it is another. */
  get interrupted(): AbortSignal {
    return this.#interrupted.signal;
  }

  get interruptedBy(): NodeJS.Signals | undefined {
    const { aborted, reason } = this.#interrupted.signal;
    return aborted ? (reason as NodeJS.Signals) : undefined;
  }

  /** From here on signals are the command's, which is about to be started: none may be lost, and none may end us. */
  expectCommand(): void {
    this.#pendingSignals = [];
    for (const name of [...forwarded, "SIGCONT"] as const) {
      this.#on(name, () => {
        this.#forward(name);
      });
    }
  }

  /** Called when the command is supervised: at a SIGCONT its lease is looked at before it goes on. */
  forwardTo(command: ChildCommand, inForeground: boolean): void {
    this.#command = command;
    this.#inForeground = inForeground;
    this.#on("SIGTSTP", () => {
      // While we are stopped nobody renews: the command has to stand still as well.
      if (!inForeground) command.signal("SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
    });
    this.#on("SIGCONT", () => command.signal("SIGCONT"));
    for (const name of this.#pendingSignals ?? []) this.#forward(name);
    this.#pendingSignals = undefined;
  }

  /** The command is over, or could not be started: signals are ours again. */
  stopForwarding(): void {
    if (this.#command === undefined && this.#pendingSignals === undefined) return;
    this.#command = undefined;
    this.#pendingSignals = undefined;
    this.#interrupted = new AbortController();
  }

  [Symbol.dispose](): void {
    for (const [name, handler] of this.#handlers) process.off(name, handler);
  }

  #on(name: NodeJS.Signals, handler: () => void): void {
    const former = this.#handlers.get(name);
    this.#handlers.set(name, handler);
    process.on(name, handler); // before the former one goes: without any the signal would end us
    if (former) process.off(name, former);
  }

  #forward(name: NodeJS.Signals): void {
    if (this.#pendingSignals !== undefined && this.#command === undefined) {
      this.#pendingSignals.push(name);
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
