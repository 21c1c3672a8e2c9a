import { memory } from "holdfast/memory";
import { expect, test } from "vitest";

import { lockState } from "../src/lock-state.ts";

test("a state derived from another state is logged as itself, however often it is serialized", async () => {
  const driver = memory();
  const { result } = driver.acquire({
    key: "key",
    lockMode: undefined,
    ttlMs: 1_000,
    deadline: null,
    ticket: undefined,
    fencingCount: 1,
    info: undefined,
  });
  await result;
  const held = await driver.inspect("key");
  const freed = lockState({ ...held, holders: [] });
  expect(held.holders).toHaveLength(1);
  expect(JSON.parse(JSON.stringify(freed.toJSON()))).toMatchObject({ holders: [] });
  await driver.close();
});
