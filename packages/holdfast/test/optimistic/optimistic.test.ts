import { optimistic, OptimisticConflictError, type OptimisticUpdate } from "holdfast/optimistic";
import { expect, test } from "vitest";

import { defaultBackoffMs } from "../../src/optimistic/optimistic.ts";

/** A counter that others raise before the first `conflicts` writes. */
function contended(conflicts: number): OptimisticUpdate<number, number> & { tries: number } {
  let version = 0;
  return {
    tries: 0,
    async read() {
      return version;
    },
    async write(state) {
      this.tries += 1;
      if (this.tries <= conflicts) {
        version += 1;
      }
      return state === version ? { written: true, value: ++version } : { written: false };
    },
  };
}

test("an update without conflict is written once", async () => {
  const update = contended(0);
  expect(await optimistic(update)).toBe(1);
  expect(update.tries).toBe(1);
});

test("after a conflict the state is read again, after the pause of `backoff`", async () => {
  const pauses: number[] = [];
  const backoff = (conflicts: number): number => {
    pauses.push(conflicts);
    return 0;
  };
  expect(await optimistic(contended(3), { backoff })).toBe(4);
  expect(pauses).toEqual([1, 2, 3]);
});

test("an update that conflicts in every try rejects with the number of tries", async () => {
  const update = contended(Infinity);
  const failure = optimistic(update, { attempts: 4, backoff: () => 0 });
  await expect(failure).rejects.toThrow(OptimisticConflictError);
  await expect(failure).rejects.toMatchObject({ name: "OptimisticConflictError", tries: 4, retryable: true });
  expect(update.tries).toBe(4);
});

test("an aborted signal ends the pause, and nothing is read or written after it", async () => {
  const update = contended(Infinity);
  const stop = new AbortController();
  const backoff = (): number => {
    queueMicrotask(() => stop.abort(new Error("stopped")));
    return 2 ** 30;
  };
  await expect(optimistic(update, { signal: stop.signal, backoff })).rejects.toThrow("stopped");
  await expect(optimistic(update, { signal: stop.signal })).rejects.toThrow("stopped");
  expect(update.tries).toBe(1);
});

test("an error of the write rejects the call, and is not tried again", async () => {
  let tries = 0;
  const write = (): Promise<never> => {
    tries += 1;
    return Promise.reject(new Error("sold out"));
  };
  await expect(optimistic({ read: async () => 1, write })).rejects.toThrow("sold out");
  expect(tries).toBe(1);
});

test("the default pause is random, and doubles from 2 ms to 100 ms", () => {
  const random = { id: () => "", nextFloat: () => 0.5 };
  expect([1, 2, 3, 6, 7, 100].map((conflicts) => defaultBackoffMs(random, conflicts))).toEqual([
    1, 2, 4, 32, 50, 50,
  ]);
});

test.each([
  [{ attempts: 0 }, "Expected `attempts` to be an integer from 1 to 1000, got 0 (number)"],
  [{ signal: 1 }, "Expected `signal` to be an AbortSignal, got 1 (number)"],
  [{ attempt: 1 }, "Unknown option `attempt`; expected one of attempts, backoff, signal"],
  [
    { backoff: () => -1 },
    "Expected `backoff` to be a function that returns a number of ms from 0, got -1 (number)",
  ],
])("an invalid option is refused: %#", async (options, message) => {
  await expect(optimistic(contended(9), options as object)).rejects.toThrow(message);
});
