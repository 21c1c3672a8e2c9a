import type { CheckName, Finding } from "../judge/findings.ts";
import type { Schedule, Step } from "../plan/schedule.ts";
import { shrinkSteps } from "./simpler.ts";

export interface Shrunk {
  readonly schedule: Schedule;
  readonly finding: Finding;
  /** How many schedules were run to shrink this one. */
  readonly runs: number;
  /** No further step of shrinking keeps the failure. False: the time limit ended the shrinking. */
  readonly isDone: boolean;
}

interface ShrinkOptions {
  readonly run: (schedule: Schedule) => Promise<readonly Finding[]>;
  /** Whether there is time for another run. */
  readonly mayContinue: () => boolean;
  readonly progress: (schedule: Schedule, runs: number) => void;
}

/** Makes a failing schedule smaller while the same check fails. Undefined: the schedule does not fail. */
export async function shrink(schedule: Schedule, options: ShrinkOptions): Promise<Shrunk | undefined> {
  const [finding] = await options.run(schedule);
  return finding ? new Shrinker(schedule, finding, options).run() : undefined;
}

class Shrinker {
  #best: Schedule;
  #finding: Finding;
  #runs = 1;
  readonly #check: CheckName;
  readonly #options: ShrinkOptions;

  constructor(schedule: Schedule, finding: Finding, options: ShrinkOptions) {
    this.#best = schedule;
    this.#finding = finding;
    this.#check = finding.check;
    this.#options = options;
  }

  async run(): Promise<Shrunk> {
    let previous: Schedule;
    do {
      previous = this.#best;
      await this.#removeSteps();
      await this.#simplify();
    } while (previous !== this.#best && this.#options.mayContinue());
    const isDone = previous === this.#best && this.#options.mayContinue();
    return { schedule: this.#best, finding: this.#finding, runs: this.#runs, isDone };
  }

  /** Delta debugging, after Zeller: removes halves of the steps first, then smaller and smaller ranges. */
  async #removeSteps(): Promise<void> {
    let size = Math.ceil(this.#best.steps.length / 2);
    while (size >= 1 && this.#options.mayContinue()) {
      for (let end = this.#best.steps.length; end > 0; end -= size) {
        const { steps } = this.#best;
        await this.#accept({ ...this.#best, steps: withoutRange(steps, Math.max(0, end - size), end) });
      }
      size = size === 1 ? 0 : Math.ceil(size / 2);
    }
  }

  async #simplify(): Promise<void> {
    let isSimpler = true;
    while (isSimpler) {
      isSimpler = false;
      for (const simpler of shrinkSteps(this.#best)) {
        if (await this.#accept(simpler)) {
          isSimpler = true;
          break;
        }
      }
    }
  }

  /** @returns whether the same check fails */
  async #accept(schedule: Schedule): Promise<boolean> {
    if (!this.#options.mayContinue()) {
      return false;
    }
    this.#runs += 1;
    const findings = await this.#options.run(schedule);
    const same = findings.find(({ check }) => check === this.#check);
    if (same) {
      this.#best = schedule;
      this.#finding = same;
      this.#options.progress(schedule, this.#runs);
    }
    return same !== undefined;
  }
}

function withoutRange(steps: readonly Step[], from: number, to: number): Step[] {
  return [...steps.slice(0, from), ...steps.slice(to)];
}
