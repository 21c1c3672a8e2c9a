import { beforeEach, expect, test } from "vitest";

import { Line, type Caller } from "../src/line.ts";
import { Link } from "../src/queue.ts";

interface Held {
  readonly of: string;
}

const limits = { max: 2, maxMs: 100 };
let line: Line<Held>;
let told: string[];

beforeEach(() => {
  line = new Line();
  told = [];
});

function caller(name: string, takes = true): Caller<Held> {
  const self: Caller<Held> = {
    get link() {
      return link;
    },
    describe: () => ({ owner: name, since: 0 }),
    accepts: () => takes,
    receive: (hold) => {
      told.push(`${name} takes over from ${hold.of}`);
      return { of: name };
    },
    contend: (from) => {
      told.push(from ? `${name} contends, giving up ${from.of}` : `${name} contends`);
      return from && Promise.resolve(true);
    },
  };
  const link = new Link(self);
  return self;
}

/** A line whose first caller holds, with others behind it. */
function heldBy(name: string, ...others: Caller<Held>[]): Held {
  const [first, hold] = [caller(name), { of: name }];
  line.join(first);
  for (const other of others) {
    line.join(other);
  }
  line.granted(first, hold, 0);
  told = [];
  return hold;
}

test("only the first in line contends", () => {
  line.join(caller("a"));
  line.join(caller("b"));
  line.join(caller("c"));
  expect(told).toEqual(["a contends"]);
  expect(line.length).toBe(3);
});

test("a released hold goes to the next, in order of arrival", () => {
  const hold = heldBy("a", caller("b"), caller("c"));
  expect(line.release(hold, 1, limits)).toEqual({ to: "caller" });
  expect(line.release(line.holder as Held, 1, limits)).toEqual({ to: "caller" });
  expect(told).toEqual(["b takes over from a", "c takes over from b"]);
});

test("with nobody behind it a released hold goes to the engine, and the line is empty", () => {
  const hold = heldBy("a");
  expect(line.isEmpty).toBe(false);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(line.isEmpty).toBe(true);
});

test("after so many hand-overs the hold is passed on, for others to get their turn", async () => {
  heldBy("a", caller("b"), caller("c"), caller("d"), caller("e"));
  line.release(line.holder as Held, 1, limits);
  line.release(line.holder as Held, 2, limits);
  const leaving = line.release(line.holder as Held, 3, limits);
  expect(told).toEqual(["b takes over from a", "c takes over from b", "d contends, giving up c"]);
  expect(leaving.to).toBe("others");
  expect(leaving.to === "others" && (await leaving.released)).toBe(true);
  expect(line.holder).toBeUndefined();
});

test("a new grant begins a new run", () => {
  const [d, e] = [caller("d"), caller("e")];
  heldBy("a", caller("b"), caller("c"), d, e);
  for (let turn = 0; turn < 3; turn += 1) {
    line.release(line.holder as Held, 1, limits);
  }
  line.granted(d, { of: "d" }, 1_000);
  expect(line.release(line.holder as Held, 1_001, limits)).toEqual({ to: "caller" });
  expect(told.at(-1)).toBe("e takes over from d");
});

test("a run of hand-overs is bounded in time as well", () => {
  heldBy("a", caller("b"), caller("c"));
  expect(line.release(line.holder as Held, 99, limits).to).toBe("caller");
  expect(line.release(line.holder as Held, 100, limits).to).toBe("others");
  expect(told).toEqual(["b takes over from a", "c contends, giving up b"]);
});

test("without hand-overs every release is passed on", () => {
  const hold = heldBy("a", caller("b"));
  expect(line.release(hold, 0, { max: 0, maxMs: 100 }).to).toBe("others");
});

test("a caller that may not take the hold over contends, giving it up", () => {
  const hold = heldBy("a", caller("b", false));
  expect(line.release(hold, 1, limits).to).toBe("others");
  expect(told).toEqual(["b contends, giving up a"]);
});

test("a contender that leaves hands its turn on", () => {
  const first = caller("a");
  line.join(first);
  line.join(caller("b"));
  line.leave(first);
  expect(told).toEqual(["a contends", "b contends"]);
});

test("one that leaves from the middle is passed over", () => {
  const b = caller("b");
  const hold = heldBy("a", b, caller("c"));
  line.leave(b);
  expect(told).toEqual([]);
  line.release(hold, 1, limits);
  expect(told).toEqual(["c takes over from a"]);
});

test("nobody is handed a hold that was lost: the next contends", () => {
  const hold = heldBy("a", caller("b"));
  line.ended(hold);
  expect(told).toEqual(["b contends"]);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
});

test("a hold that is not the line's goes to the engine and changes nothing", () => {
  const hold = heldBy("a", caller("b"));
  expect(line.release({ of: "elsewhere" }, 1, limits)).toEqual({ to: "engine" });
  expect([line.holder, told]).toEqual([hold, []]);
});

test("a hold that was got past the line serves it too", () => {
  const hold = { of: "try" };
  line.begin(hold, 0);
  line.join(caller("a"));
  expect(told).toEqual([]);
  line.release(hold, 1, limits);
  expect(told).toEqual(["a takes over from try"]);
});

test("where somebody contends already, a hold that was got past the line is released by itself", () => {
  line.join(caller("a"));
  line.join(caller("b"));
  const hold = { of: "try" };
  line.begin(hold, 0);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(told).toEqual(["a contends"]);
});

test("a line counts those who wait outside of it", () => {
  line.outside = 2;
  expect([line.length, line.isEmpty]).toEqual([2, false]);
});
