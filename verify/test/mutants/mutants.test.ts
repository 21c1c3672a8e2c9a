import { existsSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { mutatedFiles } from "../../mutants/edits.ts";
import { verdictLine } from "../../mutants/report.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { run } from "../../mutants/run.ts";

/** One mutant for each of the most common ways to break the protocol. Each is killed quickly. `npm run verify:mutants` runs all. */
const chosen = [
  "release-without-comparing",
  "extend-re-creates",
  "validity-counts-from-the-reply",
  "bracket-survives-a-reconnect",
  "waiter-without-its-poll",
  "no-yield",
  "a-yielded-vote-still-counts",
  "majority-of-the-replies-extends",
  "fencing-without-the-second-round",
  "acknowledgement-without-its-value",
  "number-of-a-block-is-used-twice",
  "restarted-node-votes",
] as const;

test("each mutant of the catalogue fits the source and has a unique name", () => {
  const root = repositoryRoot();
  const outdated = catalogue.flatMap((mutant) => {
    try {
      mutatedFiles(root, mutant);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(outdated).toEqual([]);
  expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
});

test("each test file of a killer exists", () => {
  const root = repositoryRoot();
  const files = catalogue.flatMap(({ killers }) =>
    killers.flatMap((killer) => ("file" in killer ? killer.file : [])),
  );
  expect([...new Set(files)].filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("the killers of the catalogue detect a broken library", async () => {
  const mutants = catalogue.filter(({ name }) => (chosen as readonly string[]).includes(name));
  expect(mutants).toHaveLength(chosen.length);
  const verdicts = await run(mutants, {
    root: repositoryRoot(),
    workers: 1,
    mode: "expected",
    checksUnmutated: false, // the other tests check the unmutated library
    print: () => undefined,
    onVerdict: () => undefined,
  });
  expect(verdicts.map(verdictLine).filter((line) => !line.includes(": killed by "))).toEqual([]);
}, 300_000);
