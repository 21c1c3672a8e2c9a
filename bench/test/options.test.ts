import { expect, test } from "vitest";

import { parseOptions } from "../src/options.ts";
import { peers } from "../src/roster.ts";
import { suiteNames } from "../src/suite.ts";

const parse = (...args: string[]): ReturnType<typeof parseOptions> => parseOptions(args, "results");

test("without options every suite and every peer has as many rounds as the suite likes, which are recorded", () => {
  expect(parse()).toEqual({
    help: false,
    quick: false,
    suites: suiteNames,
    rounds: null,
    measureMs: null,
    peers,
    out: "results",
  });
});

test("a quick run is not recorded", () => {
  expect(parse("--quick")).toMatchObject({ quick: true, rounds: null, out: null });
});

test("a quick run keeps what was asked for beside it", () => {
  expect(parse("--quick", "--rounds", "2", "--out", "here")).toMatchObject({ rounds: 2, out: "here" });
});

test("one suite can be asked for by its name", () => {
  expect(parse("--suite", "takeover").suites).toEqual(["takeover"]);
});

test("several suites keep the order in which they run, however they were given", () => {
  expect(parse("--suite", "redlock-hot, hot").suites).toEqual(["hot", "redlock-hot"]);
});

test("peers keep the order of the roster, however they were given", () => {
  expect(parse("--peers", "redis-semaphore, redlock").peers).toEqual(["redlock", "redis-semaphore"]);
});

test("peers can be left out altogether", () => {
  expect(parse("--peers", "none").peers).toEqual([]);
});

test("seconds become milliseconds", () => {
  expect(parse("--seconds", "0.25").measureMs).toBe(250);
});

test.each([
  ["--suite", "cold", "Expected --suite to be some of uncontended, hot, renewals, takeover, read-write, "],
  ["--suite", "hot,cold", 'separated by commas, or all, got "cold"'],
  ["--peers", "redlock,raw", "Expected --peers to be none, or some of redlock, "],
  ["--rounds", "0", "Expected --rounds to be an integer from 1 to 100"],
  ["--rounds", "1.5", "Expected --rounds to be an integer from 1 to 100"],
  ["--seconds", "soon", "Expected --seconds to be a number from 0.1 to 600"],
])("%s %s is refused, and the message names the option", (option, value, message) => {
  const act = (): unknown => parse(option, value);
  expect(act).toThrow(TypeError);
  expect(act).toThrow(message);
});
