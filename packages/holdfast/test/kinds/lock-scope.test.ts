import { isLockError } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { LockScope } from "../../src/kinds/lockable.ts";
import type { InternalLease } from "../../src/lease/lease.ts";

let frames: LockScope;

beforeEach(() => {
  frames = new LockScope();
});

function lease(key: string): InternalLease & { left: number } {
  const fake = {
    key,
    keys: [key],
    left: 1_000,
    get isInForce() {
      return this.left > 0;
    },
  };
  return fake as unknown as InternalLease & { left: number };
}

function isRefused(key: string): boolean {
  try {
    frames.assertNotWithin(key);
    return false;
  } catch (error) {
    expect(isLockError(error, "self-deadlock") && error.key === key && !error.retryable).toBe(true);
    return true;
  }
}

test("outside every scope no key is refused", () => {
  expect(isRefused("a")).toBe(false);
});

test("inside a scope its own key is refused, and other keys are not", () => {
  frames.run(lease("a"), () => {
    expect([isRefused("a"), isRefused("b")]).toEqual([true, false]);
  });
  expect(isRefused("a")).toBe(false);
});

test("inside nested scopes the keys of all scopes are refused", () => {
  frames.run(lease("a"), () => {
    frames.run(lease("b"), () => {
      expect([isRefused("a"), isRefused("b"), isRefused("c")]).toEqual([true, true, false]);
    });
    expect(isRefused("b")).toBe(false);
  });
});

test("a scope covers the calls that its work awaits and starts", async () => {
  await frames.run(lease("a"), async () => {
    await Promise.resolve();
    expect(isRefused("a")).toBe(true);
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        expect(isRefused("a")).toBe(true);
        resolve();
      });
    });
  });
});

test("work that runs beside a scope is outside that scope", async () => {
  const inside = frames.run(lease("a"), async () => {
    await Promise.resolve();
    return isRefused("a");
  });
  expect(isRefused("a")).toBe(false);
  expect(await inside).toBe(true);
});

test("the key of an ended lease is not refused", () => {
  const released = lease("a");
  frames.run(released, () => {
    released.left = 0;
    expect(isRefused("a")).toBe(false);
  });
});

test("a scope belongs to one `Locks`", () => {
  const others = new LockScope();
  frames.run(lease("a"), () => {
    expect(() => {
      others.assertNotWithin("a");
    }).not.toThrow();
    others.run(lease("b"), () => {
      expect(isRefused("a")).toBe(true);
      expect(isRefused("b")).toBe(false);
    });
  });
});
