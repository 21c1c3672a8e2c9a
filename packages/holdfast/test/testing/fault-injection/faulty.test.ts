import { describe, expect, test } from "vitest";

import { clientInfoScript, handshakeScript } from "../../../src/drivers/redis/protocol/scripts.generated.ts";
import {
  send,
  clock,
  connection,
  faults,
  listen,
  listener,
  log,
  onFaultyConnection,
  server,
  settle,
} from "../../support/faulty-connection.ts";

onFaultyConnection();

test("without faults nothing changes", async () => {
  expect([connection.keyPrefix, connection.name]).toEqual(["app:", "fake"]);
  listen();
  send("a");
  await settle();
  expect(log).toEqual(["up", "a: 1", "heard a"].toSorted(byLog));
  server.restart({ keepData: true });
  await settle();
  expect(log.slice(3)).toEqual(["connection down", "down", "up"]);
});

describe("delays", () => {
  test("a request reaches the server late", async () => {
    faults.delay({ requestMs: 50 });
    send("a");
    await clock.advance(49);
    expect(server.keys()).toEqual([]);
    await clock.advance(1);
    expect(server.keys()).toEqual(["client:a"]);
    expect(log).toEqual(["a: 0"]);
  });

  test("replies and messages arrive late", async () => {
    listen();
    await settle();
    faults.delay({ replyMs: 50 });
    send("a");
    await clock.advance(49);
    expect(server.keys()).toEqual(["client:a"]);
    expect(log).toEqual(["up"]);
    await clock.advance(1);
    expect(log.toSorted()).toEqual(["a: 1", "heard a", "up"]);
  });

  test("a shorter delay does not change the order of requests", async () => {
    faults.delay({ requestMs: 50 });
    send("a");
    faults.delay({});
    send("b");
    await clock.advance(10);
    expect(log).toEqual([]);
    await clock.advance(40);
    expect(log).toEqual(["a: 0", "b: 0"]);
  });

  test("a message may overtake the reply to an earlier request", async () => {
    listen();
    await settle();
    faults.delay({ replyMs: 50, messageMs: 10 });
    send("a");
    await clock.advance(10);
    expect(log).toEqual(["up", "heard a"]);
    await clock.advance(40);
    expect(log).toEqual(["up", "heard a", "a: 1"]);
  });
});

describe("a plain command", () => {
  const asked = ["GET", "appendfsync"];

  test("reaches the server like a script", async () => {
    expect(await connection.command("CONFIG", asked)).toEqual(["appendfsync", "everysec"]);
    await expect(connection.command("nosuch", [])).rejects.toThrow(/^ERR unknown command/);
  });

  test("has the same faults", async () => {
    const get = (): void => {
      connection.command("CONFIG", asked).then(
        () => log.push("answered"),
        (error: unknown) => log.push((error as Error).message),
      );
    };
    faults.refuse(new Error("LOADING"), 1);
    get();
    faults.dropReply(({ script, args }) => script === "CONFIG" && args.includes("appendfsync"), "reset");
    get();
    await settle();
    expect(log).toEqual(["LOADING", "Connection is closed."]);
    faults.dropReply(0);
    faults.delay({ requestMs: 20, replyMs: 20 });
    get();
    await clock.advance(39);
    expect(log).toHaveLength(2);
    faults.freeze();
    await clock.advance(100);
    expect(log).toHaveLength(2);
    faults.thaw();
    await settle();
    expect(log).toEqual(["LOADING", "Connection is closed.", "answered"]);
  });
});

describe("lost replies", () => {
  test("are lost after the server has executed the request", async () => {
    faults.dropReply(2);
    send("a");
    send("b");
    send("c");
    await clock.advance(60_000);
    expect(log).toEqual(["c: 0"]);
    expect(server.keys()).toEqual(["client:a", "client:b", "client:c"]);
  });

  test("can be selected by the arguments of their requests", async () => {
    faults.dropReply(({ script, args }) => script === "handshake" && args.includes("b"));
    send("a");
    send("b");
    send("c");
    await settle();
    expect(log).toEqual(["a: 0", "c: 0"]);
    faults.dropReply(0);
    send("b");
    await settle();
    expect(log).toEqual(["a: 0", "c: 0", "b: 0"]);
  });

  test("may come with a lost connection, which is reported", async () => {
    connection.onDown(() => log.push("connection down"));
    faults.dropReply(1, "reset");
    send("a");
    await settle();
    expect(log).toEqual(["connection down", "a: Connection is closed."]);
    expect(server.keys()).toEqual(["client:a"]);
  });
});

test("a refused request never reaches the server", async () => {
  faults.refuse(new Error("LOADING"), 1);
  send("a");
  send("b");
  await settle();
  expect(log.toSorted()).toEqual(["a: LOADING", "b: 0"]);
  expect(server.keys()).toEqual(["client:b"]);
  faults.refuse(new Error("LOADING"));
  send("c");
  send("d");
  faults.refuse(null);
  send("e");
  await settle();
  expect(server.keys()).toEqual(["client:b", "client:e"]);
});

test("while frozen nothing passes, and after the thaw all passes in order", async () => {
  listen();
  await settle();
  log.length = 0;
  faults.freeze();
  send("a");
  send("b");
  await server.connect().run(handshakeScript, ["client:x"], ["channel", "s", "x", "60000", "owner", "x"]);
  await clock.advance(60_000);
  expect(log).toEqual([]);
  expect(server.keys()).toEqual(["client:x"].filter((key) => server.keys().includes(key)));
  faults.thaw();
  await settle();
  expect(log.filter((line) => !line.startsWith("heard"))).toEqual(["a: 1", "b: 1"]);
  expect(log.filter((line) => line.startsWith("heard"))).toEqual(["heard x", "heard a", "heard b"]);
});

test("selected messages are lost, and the server counts them as received", async () => {
  listen();
  await settle();
  faults.dropMessages((text, channel) => text === "a" && channel === "channel");
  send("a");
  send("b");
  await settle();
  expect(log.toSorted()).toEqual(["a: 1", "b: 1", "heard b", "up"]);
});

test("a dropped subscription comes back, and misses the messages published in between", async () => {
  listen();
  await settle();
  faults.dropSubscription();
  await settle();
  send("a");
  await settle();
  expect(log.toSorted()).toEqual(["a: 1", "down", "heard a", "up", "up"]);
});

test("a closed subscription delivers nothing more", async () => {
  const subscription = connection.subscribe("channel", "sharded", listener());
  await settle();
  faults.delay({ replyMs: 50 });
  send("a");
  await clock.advance(10);
  subscription.close();
  faults.dropSubscription();
  await clock.advance(100);
  expect(log).toEqual(["up", "a: 1"]);
});

test("the error of a script reaches the caller", async () => {
  server.set("client:a", "spoilt");
  await expect(connection.run(clientInfoScript, ["client:a"], [])).rejects.toThrow(/^WRONGTYPE /);
});

function byLog(one: string, other: string): number {
  return log.indexOf(one) - log.indexOf(other);
}
