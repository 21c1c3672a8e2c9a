/**
 * Ends the output of Vitest with one plain line for programs: `N passed, N failed` (and `, N skipped`). A file that could not run
 * counts as failed, and so does an error outside every test. The line never states `0 failed` for a failed run.
 */
export default class PlainReporter {
  #line;

  onTestRunEnd(modules, errors, reason) {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      const failedBefore = counts.failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state in counts) counts[state] += 1;
      }
      if (module.state() === "failed" && counts.failed === failedBefore) counts.failed += 1;
    }
    if (reason === "failed") counts.failed = Math.max(counts.failed, 1);
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
    // The line is printed at the exit, after the output of other reporters. A second run of watch mode replaces it.
    if (this.#line === undefined) process.once("exit", () => process.stdout.write(`${this.#line}\n`));
    this.#line = `${counts.passed} passed, ${counts.failed} failed${skipped}`;
  }
}
