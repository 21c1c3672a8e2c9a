import { expect } from "vitest";

export type ErrorKind = typeof TypeError | typeof RangeError;

/** Asserts that a call throws synchronously, with the option's name, the expected value and the actual value in the message. */
export function throwsFor(call: () => unknown, kind: ErrorKind, ...fragments: string[]): void {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    expect(error).toBeInstanceOf(kind);
    for (const fragment of fragments) {
      expect((error as Error).message).toContain(fragment);
    }
    return;
  }
  if (result instanceof Promise) {
    result.catch(() => undefined);
    expect.unreachable(`did not throw synchronously: ${fragments.join(", ")}`);
  }
  expect.unreachable(`was accepted: ${fragments.join(", ")}`);
}
