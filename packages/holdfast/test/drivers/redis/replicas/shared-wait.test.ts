import { createLocks } from "holdfast";
import { redis, type Connection } from "holdfast/redis";
import { rejection, startRedis, waitUntil } from "@holdfast/test-kit";
import { Redis as Ioredis5 } from "ioredis5";
import { expect, test } from "vitest";

import type { CommandConnection } from "../../../../src/drivers/redis/clients/connection.ts";
import { detectConnection } from "../../../../src/drivers/redis/clients/detect.ts";
import { onEachRedis } from "../../../support/servers.ts";

/** A connection to a real server. Its connection for `WAIT` holds the replies of scripts back until the test lets them through, one by one. */
class HeldReplies implements Connection {
  isHolding = false;
  readonly replies: (() => void)[] = [];
  readonly #inner: Connection;

  constructor(inner: Connection) {
    this.#inner = inner;
  }

  get keyPrefix(): string {
    return this.#inner.keyPrefix;
  }

  get name(): string {
    return this.#inner.name;
  }

  run(...call: Parameters<Connection["run"]>): Promise<unknown> {
    return this.#inner.run(...call);
  }

  command(...call: Parameters<Connection["command"]>): Promise<unknown> {
    return this.#inner.command(...call);
  }

  subscribe(...call: Parameters<Connection["subscribe"]>): ReturnType<Connection["subscribe"]> {
    return this.#inner.subscribe(...call);
  }

  onDown(listener: () => void): () => void {
    return this.#inner.onDown(listener);
  }

  dedicatedConnection(): CommandConnection {
    const dedicated = this.#inner.dedicatedConnection?.() as CommandConnection;
    return {
      run: async (...call) => {
        const answers = await dedicated.run(...call);
        if (this.isHolding) {
          await new Promise<void>((resolve) => this.replies.push(resolve));
        }
        return answers;
      },
      command: (...call) => dedicated.command(...call),
      onDown: (listener) => dedicated.onDown(listener),
      close: () => dedicated.close(),
    };
  }
}

/** A new connection sends nothing before its first use, because `WAIT` of Redis 7.0 would wait for the state after such a command. */
const mute = { enableReadyCheck: false, disableClientInfo: true };

onEachRedis("With minReplicas, a grant whose wait follows another wait", (program) => {
  test("is not acknowledged if their connection is lost during the other wait", async () => {
    const primary = await startRedis({ program, args: ["--repl-diskless-sync-delay", "0"] });
    const replica = await startRedis({ program, args: ["--replicaof", `127.0.0.1 ${primary.port}`] });
    const client = new Ioredis5(primary.port, "127.0.0.1", mute).on("error", () => undefined);
    const connection = new HeldReplies(detectConnection(client));
    const locks = createLocks(redis(connection, { commandTimeoutMs: 4_000, minReplicas: 1 }));
    try {
      const probe = primary.client();
      await waitUntil(async () => (await probe.wait(1, 100)) === 1, "the replica follows");
      await locks.withLock("warm up", () => undefined);
      replica.freeze();
      connection.isHolding = true;
      const first = rejection(locks.tryAcquire("first"));
      await waitUntil(() => connection.replies.length === 1, "the first grant is extended");
      const second = rejection(locks.tryAcquire("second"));
      await waitUntil(() => connection.replies.length === 2, "the second grant is extended");
      connection.replies[0]?.();
      let blocked: string | undefined;
      await waitUntil(async () => {
        blocked = /^id=(\d+) .* flags=b .* cmd=wait /m.exec(String(await probe.client("LIST")))?.[1];
        return blocked !== undefined;
      }, "the connection waits for the first grant");
      connection.replies[1]?.();
      await probe.call("client", "kill", "id", String(blocked));
      for (const { error } of await Promise.all([first, second])) {
        expect(error).toMatchObject({ retryable: true, outcome: "none" });
      }
      expect(await probe.exists("lock:first", "lock:second")).toBe(0);
    } finally {
      await locks.close();
      client.disconnect();
      await replica.stop();
      await primary.stop();
    }
  });
});
