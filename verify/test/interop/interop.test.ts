import { describe, expect, test } from "vitest";

import { parseOptions } from "../../interop/options.ts";
import { pairs } from "../../interop/pairs.ts";
import { judgeHistory } from "../../interop/run/judge.ts";
import { granted, historyFixture, released } from "../chaos/planted-history.ts";

const { folder, plant } = historyFixture();

describe("the judge", () => {
  test("accepts holders one after another", async () => {
    await plant({
      clients: {
        "client-ours-1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-theirs-2": [...granted(1, 201, -1), ...released(1, 300)],
      },
    });
    expect(await judgeHistory(folder())).toEqual([]);
  });

  test("detects a grant beside a valid one", async () => {
    await plant({
      clients: {
        "client-ours-1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-theirs-2": [...granted(1, 199, -1), ...released(1, 300)],
      },
    });
    expect(await judgeHistory(folder())).toMatchObject([{ rule: "exclusion" }]);
  });

  test("detects a falling fencing token", async () => {
    await plant({
      clients: {
        "client-ours-1": [
          ...granted(1, 100, 10),
          ...released(1, 200),
          ...granted(2, 300, 9),
          ...released(2, 400),
        ],
      },
    });
    expect(await judgeHistory(folder())).toContainEqual(expect.objectContaining({ rule: "tokens" }));
  });
});

describe("options", () => {
  test("name an unknown library, the expected value and the actual value", () => {
    expect(() => parseOptions(["--only", "jedis"])).toThrow(
      /^Expected --only to be some of redlock, .*, got "jedis"$/,
    );
  });

  test("default to all libraries", () => {
    expect(parseOptions([])).toMatchObject({ pairs, seconds: 30, rounds: 50, hasFaults: true });
  });

  test("name an invalid number", () => {
    expect(() => parseOptions(["--rounds", "0"])).toThrow(/--rounds .*"0"/);
  });
});
