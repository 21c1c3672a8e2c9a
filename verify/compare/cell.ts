import { isFailureName } from "./failures.ts";
import { failed, verdictText, type Outcome } from "./outcome.ts";
import { isLibraryName, loadLibrary } from "./roster.ts";
import { scenarios } from "./scenarios.ts";

// Runs one scenario with one library: `cell.js <failure> <library>`. The process sends the outcome to its parent and ends.

const [failure = "", name = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());
// Node would end the process, and with the process the rest of the user's program.
process.on("unhandledRejection", (error) => {
  sendOutcome(failed(`an unhandled rejection, which ends the process: ${verdictText(error)}`));
});
process.on("uncaughtException", (error) => {
  sendOutcome(failed(`an uncaught error, which ends the process: ${verdictText(error)}`));
});

run().then(sendOutcome, (error: unknown) => {
  sendOutcome({
    verdict: "not run",
    how: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
});

async function run(): Promise<Outcome> {
  if (!isFailureName(failure) || !isLibraryName(name)) {
    throw new TypeError(`Expected a failure and a library, got ${JSON.stringify([failure, name])}`);
  }
  return scenarios[failure].run(await loadLibrary(name));
}

function sendOutcome(outcome: Outcome): void {
  process.send?.(outcome, undefined, undefined, () => process.exit());
}
