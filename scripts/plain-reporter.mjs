import { append, circumstances, cpuSeconds } from "./record.mjs";

/**
 * Ends the output of Vitest with one plain line for programs: `N passed, N failed` (and `, N skipped`). A file that could not run
 * counts as failed, and so does an error outside every test. The line never states `0 failed` for a failed run.
 *
 * In the gate (`.ci/run` sets HOLDFAST_GATE_START) the run is also a line of verify/records/gate.jsonl.
 */
export default class PlainReporter {
  #line;
  #record;

  onTestRunEnd(modules, errors, reason) {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    const failures = errors.map(({ message }) => `outside of every test: ${message}`);
    for (const module of modules) {
      const failedBefore = counts.failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state in counts) counts[state] += 1;
        if (state === "failed") failures.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
      if (module.state() === "failed" && counts.failed === failedBefore) {
        counts.failed += 1;
        failures.push(module.relativeModuleId);
      }
    }
    if (reason === "failed") counts.failed = Math.max(counts.failed, 1);
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
    // The line is printed at the exit, after the output of other reporters. A second run of watch mode replaces it.
    if (this.#line === undefined) {
      process.once("exit", () => {
        this.#writeRecord();
        process.stdout.write(`${this.#line}\n`);
      });
    }
    this.#line = `${counts.passed} passed, ${counts.failed} failed${skipped}`;
    this.#record = { ...counts, failures: [...new Set(failures)], slowest: slowestFiles(modules) };
  }

  /** At the exit, because only then have the workers ended, whose CPU time counts. */
  #writeRecord() {
    const start = process.env["HOLDFAST_GATE_START"];
    if (!start || !this.#record) return;
    append("gate.jsonl", {
      ...circumstances(),
      timeFactor: Number(process.env["HOLDFAST_TIME_FACTOR"]),
      gateSeconds: Math.round(Date.now() / 1_000 - Number(start)),
      testSeconds: Math.round(performance.now() / 1_000),
      testCpuSeconds: Math.round(cpuSeconds() ?? 0),
      ...this.#record,
    });
  }
}

/** The ten files with the longest tests, with their seconds. */
function slowestFiles(modules) {
  const files = modules.map((module) => [
    module.relativeModuleId,
    Math.round(module.diagnostic().duration / 1_000),
  ]);
  return Object.fromEntries(files.sort(([, one], [, other]) => other - one).slice(0, 10));
}
