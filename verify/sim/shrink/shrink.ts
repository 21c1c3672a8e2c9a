import type { Check, Finding } from "../judge/findings.ts";
import type { Schedule, Step } from "../plan/schedule.ts";
import { simplerOnes } from "./simpler.ts";

export interface Shrunk {
  readonly schedule: Schedule;
  readonly finding: Finding;
  /** How many schedules were played for it. */
  readonly plays: number;
  /** Nothing more can be left out, as far as was tried: it was not the time that ended it. */
  readonly isDone: boolean;
}

interface ShrinkOptions {
  readonly play: (schedule: Schedule) => Promise<readonly Finding[]>;
  /** Whether there is time for another play. */
  readonly mayGoOn: () => boolean;
  readonly progress: (schedule: Schedule, plays: number) => void;
}

/** Makes a failing schedule smaller while it fails in the same way. Undefined: it does not fail at all. */
export async function shrink(schedule: Schedule, options: ShrinkOptions): Promise<Shrunk | undefined> {
  const [finding] = await options.play(schedule);
  return finding ? new Shrinking(schedule, finding, options).run() : undefined;
}

class Shrinking {
  #best: Schedule;
  #finding: Finding;
  #plays = 1;
  readonly #check: Check;
  readonly #options: ShrinkOptions;

  constructor(schedule: Schedule, finding: Finding, options: ShrinkOptions) {
    this.#best = schedule;
    this.#finding = finding;
    this.#check = finding.check;
    this.#options = options;
  }

  async run(): Promise<Shrunk> {
    let before: Schedule;
    do {
      before = this.#best;
      await this.#leaveOutSteps();
      await this.#simplify();
    } while (before !== this.#best && this.#options.mayGoOn());
    const isDone = before === this.#best && this.#options.mayGoOn();
    return { schedule: this.#best, finding: this.#finding, plays: this.#plays, isDone };
  }

  /** Delta debugging, after Zeller: by halves first, and ever smaller parts. */
  async #leaveOutSteps(): Promise<void> {
    let size = Math.ceil(this.#best.steps.length / 2);
    while (size >= 1 && this.#options.mayGoOn()) {
      for (let end = this.#best.steps.length; end > 0; end -= size) {
        const { steps } = this.#best;
        await this.#accept({ ...this.#best, steps: without(steps, Math.max(0, end - size), end) });
      }
      size = size === 1 ? 0 : Math.ceil(size / 2);
    }
  }

  async #simplify(): Promise<void> {
    let isSimpler = true;
    while (isSimpler) {
      isSimpler = false;
      for (const simpler of simplerOnes(this.#best)) {
        if (await this.#accept(simpler)) {
          isSimpler = true;
          break;
        }
      }
    }
  }

  /** @returns whether it fails in the same way */
  async #accept(schedule: Schedule): Promise<boolean> {
    if (!this.#options.mayGoOn()) {
      return false;
    }
    this.#plays += 1;
    const findings = await this.#options.play(schedule);
    const same = findings.find(({ check }) => check === this.#check);
    if (same) {
      this.#best = schedule;
      this.#finding = same;
      this.#options.progress(schedule, this.#plays);
    }
    return same !== undefined;
  }
}

function without(steps: readonly Step[], from: number, to: number): Step[] {
  return [...steps.slice(0, from), ...steps.slice(to)];
}
