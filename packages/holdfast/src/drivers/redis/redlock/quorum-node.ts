import type { Timer } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import { Node, type NodeListener, type NodeOptions } from "../server/server.ts";
import { waitMs } from "../options.ts";
import { Releaser } from "../server/release-queue.ts";
import { RestartGuard } from "./restart-guard.ts";

const examinationMs = 60_000;

export interface VoterOptions extends Omit<NodeOptions, "listener"> {
  readonly index: number;
  readonly maxTtlMs: number;
  readonly maxClockDifferenceMs: number;
  readonly isGuardOff: boolean;
  readonly listener: NodeListener;
  /** An answer came, which told the node's time; `isNewRun`: also that it was started (again). */
  readonly answered: (isNewRun: boolean) => void;
  /** Its standing is known (again): what it said may count now. */
  readonly examined: (voter: Voter) => void;
}

/** One node of a quorum, and whether what it says counts. */
export class Voter {
  readonly index: number;
  readonly node: Node;
  readonly guard: RestartGuard;
  readonly releaser: Releaser;
  readonly #options: VoterOptions;
  #isReady = false;
  #meeting: Promise<void> | undefined;
  #examining: Promise<void> | undefined;
  #nextExamination: Timer;
  #isClosed = false;

  constructor(options: VoterOptions) {
    const { index, clock, random, commandTimeoutMs, isGuardOff, listener, answered } = options;
    const { maxTtlMs, maxClockDifferenceMs } = options;
    this.index = index;
    this.#options = options;
    this.guard = new RestartGuard(clock, maxTtlMs + waitMs(maxClockDifferenceMs), isGuardOff);
    this.node = new Node({
      ...options,
      listener: {
        ...listener,
        identified: (runId, uptimeMs) => {
          const isNewRun = this.guard.observe(runId, uptimeMs);
          if (isNewRun && this.#isReady) {
            tell("node", () => ({ node: this.name, event: "restarted" }));
          }
          if (!this.guard.isExamined && !this.#isClosed) {
            // The next answer brings another try; whoever asked, a node that was down at first is met by its first answer.
            (this.#isReady ? this.#examine() : this.meet()).catch(() => undefined);
          }
          answered(isNewRun);
        },
      },
    });
    this.releaser = new Releaser(
      () => this.node,
      clock,
      random,
      commandTimeoutMs,
      undefined,
      (token) => {
        listener.askAgain?.(token); // our own next request: the answer is the vote, whatever becomes of the message
      },
    );
  }

  get name(): string {
    return this.node.connection.name;
  }

  /** Its time and its standing are known. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Asks the server who it is, once. Rejects where it does not answer; the next call asks again. */
  meet(): Promise<void> {
    this.#meeting ??= this.#meet().catch((error: unknown) => {
      this.#meeting = undefined;
      throw error;
    });
    return this.#meeting;
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#nextExamination);
    this.releaser.close();
    this.node.close();
  }

  async #meet(): Promise<void> {
    await this.node.meet();
    await this.#examine();
    this.#isReady = true;
    this.#keepExamining();
  }

  #examine(): Promise<void> {
    this.#examining ??= this.#examineOnce().finally(() => {
      this.#examining = undefined;
    });
    return this.#examining;
  }

  async #examineOnce(): Promise<void> {
    const standing = await this.node.standing();
    const forgotten = this.guard.examine(standing);
    if (forgotten !== undefined) {
      tell("node", () => ({ node: this.name, event: "may-have-forgotten", detail: forgotten }));
    }
    this.#options.examined(this);
    if (standing.evicts) {
      tell("node", () => ({
        node: this.name,
        event: "evicts",
        detail: "its maxmemory-policy is not noeviction",
      }));
    }
  }

  #keepExamining(): void {
    if (!this.#isClosed) {
      const { clock } = this.#options;
      this.#nextExamination = clock.setTimer(() => {
        this.#examine().catch(() => undefined);
        this.#keepExamining();
      }, examinationMs);
    }
  }
}
