import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../support/servers.ts";
import { asker } from "./scripts/stage.ts";
import { Pair, type Outcome } from "./twin/pair.ts";
import { steps, type Step } from "./twin/steps.ts";

onRedis("the twin", () => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await Pair.open();
  });
  afterAll(() => pair.close());

  for (const isQuorum of [false, true]) {
    const where = isQuorum ? "as a node of a quorum" : "alone";
    test(`answers every operation as a real server does ${where}, sends the same messages and keeps the same data`, async () => {
      await compare(isQuorum);
    }, 120_000);
  }

  async function compare(isQuorum: boolean): Promise<void> {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(steps(isQuorum), async (sequence) => {
        await pair.reset();
        for (const step of sequence) {
          const outcome = await pair.play(step);
          expect(outcome.twin, `after ${JSON.stringify(step)}`).toEqual(outcome.real);
          count(seen, step, outcome);
        }
      }),
      { numRuns: 600, examples: [[breakOfAStayingLock(isQuorum)]] },
    );
    // That the sequences reach what they are to compare.
    const reached = [...seen.keys()].toSorted();
    expect(reached).toEqual(expect.arrayContaining(isQuorum ? [...cases, ...casesOfQuorum] : cases));
  }
});

/** Rare by chance. */
function breakOfAStayingLock(isQuorum: boolean): Step[] {
  const operation = (name: string, args: readonly string[]): Step => {
    return { type: "operate", operations: [{ lock: 0, name, args, candidate: 0 }], bound: 100_000, isQuorum };
  };
  return [
    operation("acquire", [asker(0).token, asker(0).terms, "20000", "1", "0", ""]),
    { type: "limit", lock: 0, part: 0, ttlMs: null },
    operation("breakGrant", ["0", "s", "r"]),
    operation("verify", [asker(0).token]),
  ];
}

/** Operations with their answers' first words, and messages with theirs. */
const cases = named({
  acquire: [0, 1, 2, 3, "error"],
  breakGrant: [0, 1, "error"],
  extend: [0, 1, 2, 3, "error"],
  inspect: ["facts", "error"],
  message: ["broken", "grant"],
  passOn: [0, 1, "error"],
  recant: [0, 1, "error"],
  release: [0, 1, "error"],
  verify: [0, 1, 2, 3, "error"],
});
const casesOfQuorum = named({
  agree: [0, 1, "error"],
  message: ["inquiry"],
  yield: [0, 1, 2, 3, "error"],
});

function named(answers: Readonly<Record<string, readonly (number | string)[]>>): string[] {
  return Object.entries(answers).flatMap(([name, firsts]) => firsts.map((first) => `${name} ${first}`));
}

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
