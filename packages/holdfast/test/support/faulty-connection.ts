import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { faulty, manualClock, type FaultInjector, type ManualClock } from "holdfast/testing";
import type { Connection } from "holdfast/redis";
import { beforeEach } from "vitest";

import { handshakeScript } from "../../src/drivers/redis/protocol/scripts.generated.ts";

export let clock: ManualClock;
export let server: FakeRedis;
export let connection: Connection;
export let faults: FaultInjector;
export let log: string[];

/** A server with a faulty connection, and an empty log, for each test of the file. */
export function onFaultyConnection(): void {
  beforeEach(() => {
    clock = manualClock();
    server = new FakeRedis({ clock });
    ({ connection, controls: faults } = faulty(server.connect({ keyPrefix: "app:" }), { clock }));
    log = [];
  });
}

export function send(name: string): void {
  const args = ["channel", "s", name, "60000", "owner", name];
  connection.run(handshakeScript, [`client:${name}`], args).then(
    (answer) => log.push(`${name}: ${String((answer as unknown[])[1])}`),
    (error: unknown) => log.push(`${name}: ${(error as Error).message}`),
  );
}

export function listen(): void {
  connection.subscribe("channel", "sharded", listener());
  connection.onDown(() => log.push("connection down"));
}

export function listener(): Parameters<Connection["subscribe"]>[2] {
  return {
    connected: () => void log.push("up"),
    disconnected: () => void log.push("down"),
    message: (text) => void log.push(`heard ${text}`),
  };
}

export function settle(): Promise<void> {
  return clock.advance(0);
}
