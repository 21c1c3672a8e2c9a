import { reasonOf } from "../report/reason.ts";
import type { Measurement, TaskMeasurement } from "../run/protocol.ts";

interface Task {
  waitsMs: number[];
  waitingSince: number | null;
  /** Since when it is inside, by the clock of the machine. */
  insideSince: number | null;
  weight: number;
}

/** Counts what the tasks of a worker get from `begin` to `end`; what happens before that is forgotten. */
export class Ledger {
  readonly #tasks: readonly Task[];
  #failures = 0;
  #firstFailure: string | null = null;
  #stays: number[] = [];
  #beganAt = 0;
  #cpuAtBegin: NodeJS.CpuUsage = process.cpuUsage();

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
    this.#stays = [];
    this.#cpuAtBegin = process.cpuUsage();
    this.#beganAt = performance.now();
  }

  end(leasesLost = 0): Measurement {
    const now = performance.now();
    const cpu = process.cpuUsage(this.#cpuAtBegin);
    for (const task of this.#tasks) this.#stay(task); // and who is inside still
    return {
      elapsedMs: now - this.#beganAt,
      cpuMs: (cpu.user + cpu.system) / 1000,
      tasks: this.#tasks.map((task) => measurementOf(task, now)),
      stays: Float64Array.from(this.#stays),
      leasesLost,
      failures: this.#failures,
      firstFailure: this.#firstFailure,
    };
  }

  waits(task: number): void {
    this.#at(task).waitingSince = performance.now();
  }

  granted(index: number): void {
    const task = this.#at(index);
    if (task.waitingSince !== null) task.waitsMs.push(performance.now() - task.waitingSince);
    task.waitingSince = null;
  }

  /** From now on it counts among those who are inside. */
  enters(index: number, weight: number): void {
    const task = this.#at(index);
    task.weight = weight;
    task.insideSince = machineNow();
  }

  leaves(index: number): void {
    const task = this.#at(index);
    this.#stay(task);
    task.insideSince = null;
  }

  failed(index: number, error: unknown): void {
    const task = this.#at(index);
    task.waitingSince = null;
    task.insideSince = null;
    this.#failures += 1;
    this.#firstFailure ??= reasonOf(error);
  }

  #stay({ insideSince, weight }: Task): void {
    if (insideSince !== null) this.#stays.push(insideSince, machineNow(), weight);
  }

  #at(index: number): Task {
    const task = this.#tasks[index];
    if (!task) throw new RangeError(`Expected a task below ${this.#tasks.length}, got ${index}`);
    return task;
  }
}

/** On a clock that all processes of the machine share. */
function machineNow(): number {
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
