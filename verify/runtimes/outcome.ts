/** The outcome of a cell. */
export type Outcome =
  | { readonly state: "passed" }
  | { readonly state: "failed"; readonly reasons: readonly string[] }
  /** The combination does not exist, for example a module setting that a version of TypeScript does not have. */
  | { readonly state: "absent" };

export const passed: Outcome = { state: "passed" };

export function failed(...reasons: string[]): Outcome {
  return { state: "failed", reasons };
}

/** Runs jobs, at most two at a time, because most programs wait most of the time. The results have the order of the jobs. */
export async function runJobs<Job, Result>(
  jobs: readonly Job[],
  run: (job: Job) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const pending = [...jobs.entries()];
  const work = async (): Promise<void> => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      const [index, job] = next;
      results[index] = await run(job);
    }
  };
  await Promise.all([work(), work()]);
  return results;
}
