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

describe("duplicated requests", () => {
  test("are executed twice, the second time later, with one reply", async () => {
    listen();
    await settle();
    faults.duplicate(2, 50);
    send("a");
    send("b");
    send("c");
    await clock.advance(49);
    expect(received()).toEqual(["a", "b", "c"]);
    await clock.advance(1);
    expect(received()).toEqual(["a", "b", "c", "a", "b"]);
    expect(log.filter((line) => line.endsWith(": 1"))).toEqual(["a: 1", "b: 1", "c: 1"]);
  });

  test("can be selected by their arguments", async () => {
    listen();
    await settle();
    faults.duplicate(({ args }) => args.includes("b"), 0);
    send("a");
    send("b");
    await settle();
    expect(received()).toEqual(["a", "b", "b"]);
    faults.duplicate(0, 0);
    send("b");
    await settle();
    expect(received()).toEqual(["a", "b", "b", "b"]);
  });

  test("are delayed from the arrival of the first copy, and wait while frozen", async () => {
    listen();
    await settle();
    faults.delay({ requestMs: 20 });
    faults.duplicate(1, 50);
    send("a");
    await clock.advance(30);
    faults.freeze();
    await clock.advance(100);
    send("b");
    expect(received()).toEqual(["a"]);
    faults.thaw();
    await clock.advance(20);
    expect(received()).toEqual(["a", "a", "b"]);
  });

  test("report no error of the second execution", async () => {
    faults.duplicate(1, 50);
    send("a");
    await settle();
    server.set("client:a", "spoilt");
    await clock.advance(50);
    expect(log).toEqual(["a: 0"]);
  });

  function received(): string[] {
    return log.filter((line) => line.startsWith("heard ")).map((line) => line.slice("heard ".length));
  }
});
