import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../support/redis-server.ts";
import { asker } from "./scripts/stage.ts";
import { Pair, type Outcome } from "./twin/pair.ts";
import { steps, type Step } from "./twin/steps.ts";

onRedis("the twin", () => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await Pair.open();
  });
  afterAll(() => pair.close());

  test("answers every operation as a real server does, sends the same messages and keeps the same data", async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        await pair.reset();
        for (const step of sequence) {
          const outcome = await pair.play(step);
          expect(outcome.twin, `after ${JSON.stringify(step)}`).toEqual(outcome.real);
          count(seen, step, outcome);
        }
      }),
      { numRuns: 600, examples: [[breakOfAStayingLock]] },
    );
    // That the sequences reach what they are to compare.
    const reached = [...seen.keys()].toSorted();
    expect(reached).toEqual(expect.arrayContaining(everyCase));
  }, 120_000);
});

/** Rare by chance. */
const breakOfAStayingLock: Step[] = [
  operation("acquire", [asker(0).token, asker(0).terms, "20000", "1", "0", ""]),
  { type: "limit", lock: 0, part: 0, ttlMs: null },
  operation("breakGrant", ["0", "s", "r"]),
  operation("verify", [asker(0).token]),
];

function operation(name: string, args: readonly string[]): Step {
  return { type: "operate", operations: [{ lock: 0, name, args }], bound: 100_000 };
}

/** Operations with their answers' first words, and messages with theirs. */
const everyCase = Object.entries({
  acquire: [0, 1, 2, 3, "error"],
  breakGrant: [0, 1, "error"],
  extend: [0, 1, 2, 3, "error"],
  inspect: ["facts", "error"],
  message: ["broken", "grant"],
  passOn: [0, 1, "error"],
  release: [0, 1, "error"],
  verify: [0, 1, 2, 3, "error"],
}).flatMap(([name, answers]) => answers.map((answer) => `${name} ${answer}`));

function count(seen: Map<string, number>, step: Step, { real }: Outcome): void {
  const note = (name: string): void => {
    seen.set(name, (seen.get(name) ?? 0) + 1);
  };
  for (const message of real.messages.flat()) {
    note(`message ${String(message.split(" ")[0])}`);
  }
  if (step.type === "operate") {
    step.operations.forEach(({ name }, index) => {
      const answer = real.answers[index];
      const first = String(Array.isArray(answer) ? answer[0] : answer);
      note(`${name} ${name === "inspect" && first !== "error" ? "facts" : first}`);
    });
  }
}
