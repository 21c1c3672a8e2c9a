import { reasonOf } from "../reason.ts";
import type { Measurement, TaskMeasurement } from "../protocol.ts";

interface Task {
  waitsMs: number[];
  waitingSince: number | null;
}

/** Counts what the tasks of a worker get from `begin` to `end`; what happens before that is forgotten. */
export class Ledger {
  readonly #tasks: readonly Task[];
  #failures = 0;
  #firstFailure: string | null = null;
  #beganAt = 0;
  #cpuAtBegin: NodeJS.CpuUsage = process.cpuUsage();

  constructor(tasks: number) {
    this.#tasks = Array.from({ length: tasks }, () => ({ waitsMs: [], waitingSince: null }));
  }

  begin(): void {
    for (const task of this.#tasks) task.waitsMs = [];
    this.#failures = 0;
    this.#firstFailure = null;
    this.#cpuAtBegin = process.cpuUsage();
    this.#beganAt = performance.now();
  }

  end(leasesLost = 0): Measurement {
    const now = performance.now();
    const cpu = process.cpuUsage(this.#cpuAtBegin);
    return {
      elapsedMs: now - this.#beganAt,
      cpuMs: (cpu.user + cpu.system) / 1000,
      tasks: this.#tasks.map((task) => measurementOf(task, now)),
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

  failed(task: number, error: unknown): void {
    this.#at(task).waitingSince = null;
    this.#failures += 1;
    this.#firstFailure ??= reasonOf(error);
  }

  #at(index: number): Task {
    const task = this.#tasks[index];
    if (!task) throw new RangeError(`Expected a task below ${this.#tasks.length}, got ${index}`);
    return task;
  }
}

function measurementOf({ waitsMs, waitingSince }: Task, now: number): TaskMeasurement {
  return {
    waitsMs: Float64Array.from(waitsMs),
    pendingMs: waitingSince === null ? null : now - waitingSince,
  };
}
