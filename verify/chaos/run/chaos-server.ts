import type { ServerClock } from "@holdfast/test-kit";

import { shortRunId, type ServerState } from "../judge/history.ts";
import { ChaosClock } from "./chaos-clock.ts";

/** One server of an engine, and the faults that it can have. Its port, folder and clock stay the same over restarts. */
export abstract class ChaosServer {
  abstract readonly port: number;
  readonly clock: ChaosClock;
  #isUp = true;
  #restarted: Promise<void> = Promise.resolve();
  #onStateChange: (state: ServerState, run: string, durable: boolean) => void = () => undefined;

  constructor(clock: ServerClock | undefined) {
    this.clock = new ChaosClock(clock);
  }

  /** The id of the server's present run. */
  protected abstract readonly runId: string;
  /** Ends the server by SIGKILL. */
  protected abstract kill(): Promise<void>;
  /** Starts the server again. @param args beside the former arguments */
  protected abstract start(args: readonly string[]): Promise<void>;
  protected abstract stopProcess(): void;
  protected abstract continueProcess(): void;
  /** The values that should not remain while all client processes are at rest. */
  abstract residue(): Promise<string[]>;

  /** Whether the present run has every grant on its disk, so that the next run has it too. */
  protected get isDurable(): boolean {
    return true;
  }

  /** Kills the server like a loss of power, and starts it after `whileDown`. Absent: the engine has no record of its disk. */
  losePower?(duringRewrite: boolean, whileDown: () => Promise<void>): Promise<void>;
  /** Kills the server, whose next runs are durable. Absent: its durability does not change. */
  becomeDurable?(atRunTime: boolean, whileDown: () => Promise<void>): Promise<void>;
  /** Removes the cached scripts. Absent: the engine has no scripts. */
  flushScripts?(): Promise<unknown>;
  /** Ends the connections of all clients. Absent: the server cannot. */
  endConnections?(): Promise<unknown>;
  /** Ends the connections that receive notifications. */
  endSubscriptions?(): Promise<unknown>;
  /** The number of scripts since the start of the run. Absent: the engine does not count requests. */
  scriptCount?(): Promise<number>;

  /** Whether the server runs. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Reports the current run, and from then on every end and start. */
  watch(changed: (state: ServerState, run: string, durable: boolean) => void): void {
    this.#onStateChange = changed;
    this.#publishState("up");
  }

  /**
   * Kills the server, and starts its next run after `whileDown`. A server without durability loses all data.
   * @param args determined at the start: arguments beside the former ones
   */
  restart(whileDown: () => Promise<void>, args: () => readonly string[] = () => []): Promise<void> {
    const restarted = this.#restarted.then(() => this.#restart(whileDown, args)); // an earlier restart may still run
    this.#restarted = restarted.catch(() => undefined);
    return restarted;
  }

  /** Stops the process. Connections stay open, but the server does not reply. */
  freeze(): void {
    if (this.#isUp) {
      this.stopProcess();
    }
  }

  thaw(): void {
    this.continueProcess();
  }

  async #restart(whileDown: () => Promise<void>, args: () => readonly string[]): Promise<void> {
    this.#isUp = false;
    await this.kill();
    this.#publishState("killed");
    await whileDown();
    const own = args();
    this.#publishState("starting");
    await this.start(own);
    this.#isUp = true;
    this.#publishState("up");
  }

  #publishState(state: ServerState): void {
    this.#onStateChange(state, shortRunId(this.runId), this.isDurable);
  }
}
