import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import { isThorough, limitMs } from "@holdfast/test-kit";

import { onRedis } from "../support/servers.ts";
import { requester as askerOfNode } from "../support/quorum-script-fixture.ts";
import { requester } from "../support/script-fixture.ts";
import { ServerPair, type Outcome } from "./pair.ts";
import type { Family } from "./operations.ts";
import { steps, type Step } from "./steps.ts";

/** The time limit of a comparison, ms. In its full number, it takes 15 s on an idle machine. */
const timeoutMs = limitMs(100_000);
/** `npm test` compares a sixth of the sequences, which need not reach all cases. */
const share = isThorough ? 1 : 1 / 6;

onRedis("the fake Redis", () => {
  let pair: ServerPair;
  beforeAll(async () => {
    pair = await ServerPair.open();
  });
  afterAll(() => pair.close());

  for (const isQuorum of [false, true]) {
    for (const family of ["mutex", "read-write", "semaphore", "latch"] as const) {
      if (isQuorum && family === "latch") {
        continue; // a quorum has no latches
      }
      const where = isQuorum ? "as a node of a quorum" : "alone";
      test(`answers every operation on a ${family} as a real server does ${where}, sends the same messages and keeps the same data`, async () => {
        await compare(isQuorum, family);
      });
    }
  }

  async function compare(isQuorum: boolean, family: Family): Promise<void> {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(steps(isQuorum, family), async (sequence) => {
        await pair.reset(isQuorum);
        for (const step of sequence) {
          const outcome = await pair.run(step);
          expect(outcome.fake, `after ${JSON.stringify(step)}`).toEqual(outcome.real);
          count(seen, step, outcome);
        }
      }),
      {
        numRuns: (family === "mutex" ? 600 : 300) * share,
        examples: [[rare(isQuorum, family)]],
        interruptAfterTimeLimit: timeoutMs, // reports the counterexample found so far
        markInterruptAsFailure: true,
      },
    );
    if (!isThorough) {
      return;
    }
    // The sequences must reach the cases that they compare.
    const reached = [...seen.keys()].toSorted();
    const expected = { mutex: cases, latch: casesOfLatches }[family as string] ?? casesOf(family);
    const others = isQuorum ? casesOfQuorum(family === "mutex") : casesOfOneServer;
    expect(reached).toEqual(expect.arrayContaining([...expected, ...others]));
  }
});

/** Rare by chance: a request by the holder of a broken lock, and a limit for a lock without a limit. */
function rare(isQuorum: boolean, family: Family): Step[] {
  const latest = ["9999999999999"];
  const operation = (lock: number, name: string, args: readonly string[]): Step => {
    return { type: "operate", operations: [{ lock, name, args, candidate: 0 }], bound: 100_000, isQuorum };
  };
  const lockMode = { mutex: undefined, latch: undefined, "read-write": "r", semaphore: "s1/3" }[family];
  const askers = isQuorum ? askerOfNode : requester;
  const who = askers(0, lockMode === undefined ? {} : { lockMode });
  const other = askers(1);
  const opens: Step[] = [
    operation(0, "waitLatch", [who.token, "1", "20000", "", "9999999999999", "s"]),
    operation(0, "countDown", [who.token, "1", "20000", "present", "9999999999999"]),
    { type: "delete", lock: 0, part: 0 },
  ];
  return [
    ...(family === "latch" ? opens : []),
    operation(0, "acquire", [who.token, who.entryTail, "20000", "1", "0", "", ...latest]),
    { type: "limit", lock: 0, part: 0, ttlMs: null },
    operation(0, "inspect", []),
    operation(0, "breakGrant", ["0", "s", "r"]),
    operation(0, "verify", [who.token]),
    operation(0, "extend", [who.token, "20000", "", ""]),
    operation(1, "acquire", [other.token, other.entryTail, "20000", "1", "0", "", ...latest]),
    operation(1, "setLimit", ["3"]),
    operation(1, "acquire", [who.token, who.entryTail, "20000", "1", "0", "", ...latest]),
  ];
}

/** The operations and messages, each with the first field of its reply or text. */
const cases = named({
  acquire: [0, 1, 2, 3, "error"],
  breakGrant: [0, 1, "error"],
  extend: [0, 1, 2, 3, "error"],
  inspect: ["facts", "error"],
  message: ["broken", "grant"],
  release: [0, 1, "error"],
  verify: [0, 1, 2, 3, "error"],
});
const casesOfOneServer = named({ acquire: [4] });
const casesOfLatches = named({
  countDown: [0, 1, 3, "error"],
  waitLatch: [0, 1, 2, 3, "error"],
  leaveLatchQueue: [1, "error"],
  acquire: [1, "error"],
  breakGrant: [0],
  extend: [0],
  inspect: ["facts", "error"],
  message: ["latch-open"],
  release: [0],
  verify: [0],
});

function casesOf(family: Family): string[] {
  const shared = named({
    acquire: [0, 1, 2, "error"],
    breakGrant: [0, 1, "error"],
    extend: [0, 1, 3, "error"],
    inspect: ["facts", "error"],
    message: ["broken", "grant"],
    release: [0, 1, "error"],
    verify: [0, 1, 3, "error"],
  });
  return [
    ...shared,
    ...(family === "semaphore" ? named({ setLimit: [1, "error"] }) : named({ downgrade: [0, 1] })),
  ];
}

function casesOfQuorum(isMutex: boolean): string[] {
  const some = [0, 1, "error"];
  const others = { yield: isMutex ? [0, 1, 2, 3, 4, "error"] : [...some, 4] };
  return named({ acquire: [4], raiseFence: some, message: ["inquiry"], ...others });
}

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
      const isNumber = name !== "inspect" && Number(first) > 100; // the short form of a grant is its fencing token
      note(`${name} ${name === "inspect" && first !== "error" ? "facts" : isNumber ? "1" : first}`);
    });
  }
}
