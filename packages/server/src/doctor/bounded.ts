import type { Diagnosis } from "./finding.ts";

export interface BoundedDoctorOptions {
  /** How long one diagnosis or one failure serves all requests, ms. */
  readonly freshMs?: number;
  /** How long a request waits for the checks, ms. */
  readonly limitMs?: number;
}

/**
 * Runs the checks for all requests of a service: one run at a time, because the checks send commands to every server. A result serves the
 * requests of the next 5 s.
 */
export class BoundedDoctor {
  readonly #run: () => Promise<Diagnosis>;
  readonly #freshMs: number;
  readonly #limitMs: number;
  #running: Promise<Diagnosis> | undefined;

  constructor(
    run: () => Promise<Diagnosis>,
    { freshMs = 5_000, limitMs = 20_000 }: BoundedDoctorOptions = {},
  ) {
    this.#run = run;
    this.#freshMs = freshMs;
    this.#limitMs = limitMs;
  }

  /** Rejects with the failure of the checks. After the limit it rejects too, and the run goes on: the next request joins it. */
  async diagnose(): Promise<Diagnosis> {
    this.#running ??= this.#start();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no result within ${this.#limitMs} ms`));
      }, this.#limitMs);
    });
    try {
      return await Promise.race([this.#running, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #start(): Promise<Diagnosis> {
    const running = this.#run().finally(() => {
      setTimeout(() => (this.#running = undefined), this.#freshMs).unref();
    });
    running.catch(() => undefined); // the requests may have stopped waiting
    return running;
  }
}
