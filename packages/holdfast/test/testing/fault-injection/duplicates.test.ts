import { describe, expect, test } from "vitest";

import {
  send,
  clock,
  faults,
  listen,
  log,
  onFaultyConnection,
  server,
  settle,
} from "../../support/faulty-connection.ts";

onFaultyConnection();

describe("doubled requests", () => {
  test("the server does them twice, the second time later, and one reply comes", async () => {
    listen();
    await settle();
    faults.duplicate(2, 50);
    send("a");
    send("b");
    send("c");
    await clock.advance(49);
    expect(heard()).toEqual(["a", "b", "c"]);
    await clock.advance(1);
    expect(heard()).toEqual(["a", "b", "c", "a", "b"]);
    expect(log.filter((line) => line.endsWith(": 1"))).toEqual(["a: 1", "b: 1", "c: 1"]);
  });

  test("may be chosen by what is asked", async () => {
    listen();
    await settle();
    faults.duplicate(({ args }) => args.includes("b"), 0);
    send("a");
    send("b");
    await settle();
    expect(heard()).toEqual(["a", "b", "b"]);
    faults.duplicate(0, 0);
    send("b");
    await settle();
    expect(heard()).toEqual(["a", "b", "b", "b"]);
  });

  test("are counted from when the first one reaches the server, and do not pass while frozen", async () => {
    listen();
    await settle();
    faults.delay({ requestMs: 20 });
    faults.duplicate(1, 50);
    send("a");
    await clock.advance(30);
    faults.freeze();
    await clock.advance(100);
    send("b");
    expect(heard()).toEqual(["a"]);
    faults.thaw();
    await clock.advance(20);
    expect(heard()).toEqual(["a", "a", "b"]);
  });

  test("what fails the second time is told nobody", async () => {
    faults.duplicate(1, 50);
    send("a");
    await settle();
    server.set("client:a", "spoilt");
    await clock.advance(50);
    expect(log).toEqual(["a: 0"]);
  });

  function heard(): string[] {
    return log.filter((line) => line.startsWith("heard ")).map((line) => line.slice("heard ".length));
  }
});
