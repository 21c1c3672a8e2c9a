import { errorText } from "../report/error-text.ts";
import type { Measurement, TaskMeasurement } from "../run/protocol.ts";

interface Task {
  waitsMs: number[];
  waitingSince: number | null;
  /** The start of the current hold, on the machine's monotonic clock; `null`: the task holds nothing. */
  insideSince: number | null;
  weight: number;
}

/** Records the waits, holds and failures of a worker's tasks from `begin` to `end`. Records from before `begin` are dropped. */
export class Recorder {
  readonly #tasks: readonly Task[];
  #failures = 0;
  #firstFailure: string | null = null;
  #holds: number[] = [];
  #startedAt = 0;
  #cpuAtStart: NodeJS.CpuUsage = process.cpuUsage();

  constructor(tasks: number) {
    this.#tasks = Array.from({ length: tasks }, () => ({
      waitsMs: [],
      waitingSince: null,
      insideSince: null,
      weight: 0,
    }));
  }

  begin(): void {
    for (const task of this.#tasks) task.waitsMs = [];
    this.#failures = 0;
    this.#firstFailure = null;
    this.#holds = [];
    this.#cpuAtStart = process.cpuUsage();
    this.#startedAt = performance.now();
  }

  end(leasesLost = 0): Measurement {
    const now = performance.now();
    const cpu = process.cpuUsage(this.#cpuAtStart);
    for (const task of this.#tasks) this.#recordHold(task); // a hold that has not ended counts up to now
    return {
      elapsedMs: now - this.#startedAt,
      cpuMs: (cpu.user + cpu.system) / 1000,
      tasks: this.#tasks.map((task) => measurementOf(task, now)),
      holds: Float64Array.from(this.#holds),
      leasesLost,
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    };
  }

  waiting(task: number): void {
    this.#taskAt(task).waitingSince = performance.now();
  }

  granted(index: number): void {
    const task = this.#taskAt(index);
    if (task.waitingSince !== null) task.waitsMs.push(performance.now() - task.waitingSince);
    task.waitingSince = null;
  }

  /** From now on the task counts as a holder. */
  entered(index: number, weight: number): void {
    const task = this.#taskAt(index);
    task.weight = weight;
    task.insideSince = monotonicMs();
  }

  exited(index: number): void {
    const task = this.#taskAt(index);
    this.#recordHold(task);
    task.insideSince = null;
  }

  failed(index: number, error: unknown): void {
    const task = this.#taskAt(index);
    task.waitingSince = null;
    task.insideSince = null;
    this.#failures += 1;
    this.#firstFailure ??= errorText(error);
  }

  #recordHold({ insideSince, weight }: Task): void {
    if (insideSince !== null) this.#holds.push(insideSince, monotonicMs(), weight);
  }

  #taskAt(index: number): Task {
    const task = this.#tasks[index];
    if (!task) throw new RangeError(`Expected a task below ${this.#tasks.length}, got ${index}`);
    return task;
  }
}

/** The time on a clock that all processes of the machine share. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function measurementOf(
  { waitsMs, waitingSince }: Pick<Task, "waitsMs" | "waitingSince">,
  now: number,
): TaskMeasurement {
  return {
    waitsMs: Float64Array.from(waitsMs),
    pendingMs: waitingSince === null ? null : now - waitingSince,
  };
}
