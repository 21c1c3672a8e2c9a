import { expect, test } from "vitest";

import { explore } from "../../model/explorer/explore.ts";
import { mutants } from "../../model/mutants.ts";

// `npm run verify:model -- --mutants` shows that each mutant is detected.

test.each(mutants.map(({ name, configuration }) => [name, configuration] as const))(
  "the unbroken protocol within the bounds of %s violates no invariant",
  (_, { intact }) => {
    const { violation } = explore(intact(), { states: 10_000, depth: 10_000 });
    expect(violation).toBeUndefined();
  },
);
