import { expect, test } from "vitest";

import { parseOptions } from "../src/options.ts";
import { peers } from "../src/run/contestant-list.ts";
import { suiteNames } from "../src/report/suite-names.ts";

const parse = (...args: string[]): ReturnType<typeof parseOptions> => parseOptions(args, "results");

test("without options, every suite runs with every peer and its own number of rounds, and is recorded", () => {
  expect(parse()).toEqual({
    help: false,
    list: false,
    quick: false,
    suites: suiteNames,
    rounds: null,
    measureMs: null,
    minutes: null,
    peers,
    out: "results",
    only: null,
    draw: null,
  });
});

test("a quick run is not recorded", () => {
  expect(parse("--quick")).toMatchObject({ quick: true, rounds: null, out: null });
});

test("a run of some contestants replaces no record of all", () => {
  expect(parse("--only", "raw,holdfast").out).toBeNull();
  expect(parse("--peers", "redlock").out).toBeNull();
  expect(parse("--only", "raw,holdfast", "--out", "here").out).toBe("here");
});

test("a quick run respects the other options", () => {
  expect(parse("--quick", "--rounds", "2", "--out", "here")).toMatchObject({ rounds: 2, out: "here" });
});

test("one suite can be requested by its name", () => {
  expect(parse("--suite", "takeover").suites).toEqual(["takeover"]);
});

test("several suites run in the fixed order, regardless of the order of the option", () => {
  expect(parse("--suite", "redlock-hot, hot").suites).toEqual(["hot", "redlock-hot"]);
});

test("peers run in the fixed order, regardless of the order of the option", () => {
  expect(parse("--peers", "redis-semaphore, redlock").peers).toEqual(["redlock", "redis-semaphore"]);
});

test("all peers can be left out", () => {
  expect(parse("--peers", "none").peers).toEqual([]);
});

test("charts are drawn into the folder of the option", () => {
  expect(parse("--draw", "charts")).toMatchObject({ draw: "charts", out: "results" });
});

test("seconds become milliseconds", () => {
  expect(parse("--seconds", "0.25").measureMs).toBe(250);
});

test.each([
  ["--suite", "cold", "Expected --suite to be some of uncontended, hot, skew, waiting, renewals, takeover, "],
  ["--suite", "hot,cold", 'separated by commas, or all, got "cold"'],
  ["--peers", "redlock,raw", "Expected --peers to be some of redlock, redis-semaphore, "],
  ["--only", "holdfast,redis", "Expected --only to be some of raw, redlock, "],
  ["--rounds", "0", "Expected --rounds to be an integer from 1 to 100"],
  ["--rounds", "1.5", "Expected --rounds to be an integer from 1 to 100"],
  ["--minutes", "0", "Expected --minutes to be a number from 0.05 to 1440"],
  ["--minutes", "", "Expected --minutes to be a number from 0.05 to 1440"],
  ["--seconds", "soon", "Expected --seconds to be a number from 0.1 to 600"],
])("%s %s is rejected, and the message names the option", (option, value, message) => {
  const act = (): unknown => parse(option, value);
  expect(act).toThrow(TypeError);
  expect(act).toThrow(message);
});

test("an unknown option or argument is rejected by its name", () => {
  expect(() => parse("--fast")).toThrow("--fast");
  expect(() => parse("hot")).toThrow("hot");
});
