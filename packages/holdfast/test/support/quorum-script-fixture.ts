import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { afterAll, beforeAll, describe } from "vitest";
import { startRedis, type RedisServer, waitUntil } from "@holdfast/test-kit";

import { systemClock } from "../../src/runtime/clock.ts";
import { detectConnection } from "../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../src/drivers/redis/clients/connection.ts";
import { channelOf, KeySpace, type LockKeys } from "../../src/drivers/redis/protocol/keys.ts";
import { handshakeScript, executeQuorumScript } from "../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "./servers.ts";
import {
  acquireOf,
  requester as askerOfOneServer,
  id,
  retentionMs,
  type AcquireOptions,
  type ScriptReply,
  type Requester,
} from "./script-fixture.ts";
import { encode, withProposedFence } from "../../src/drivers/redis/protocol/operation.ts";
import { wholeCommand } from "./diagnostics-log.ts";

/** How long a vote waits for a holder that was not released. */
export const waitMs = 600;

/** The allowed distance between a proposed fencing token and the server's time, in microseconds. */
export const candidateMicros = 1_000_000;

type Operation = readonly [keys: LockKeys, args: readonly string[], candidate: number];

interface NotificationLog {
  readonly kind: "s" | "p";
  readonly messages: string[];
}

/** Direct access of tests to the data of a node, without its scripts. */
interface Data {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<unknown>;
  del(key: string): Promise<unknown>;
  pttl(key: string): Promise<number>;
  pexpire(key: string, ttlMs: number): Promise<unknown>;
  hgetall(key: string): Promise<Record<string, string>>;
  hset(key: string, field: string, value: string): Promise<unknown>;
  zadd(key: string, score: number, member: string): Promise<unknown>;
  zrange(key: string): Promise<string[]>;
  /** Sets whether the server has reached `maxmemory`. */
  setMemoryFull(isFull: boolean): Promise<unknown>;
}

/** Runs the same tests on a real server and on the fake Redis, each as a node of a quorum. */
export function onNodes(title: string, tests: (fixture: QuorumScriptFixture) => void): void {
  for (const kind of ["a real server", "the fake Redis"] as const) {
    const on = kind === "the fake Redis" ? describe : onRedis;
    on(`${title}, on ${kind}`, () => {
      const fixture = new QuorumScriptFixture();
      beforeAll(() => (kind === "the fake Redis" ? fixture.openFake() : fixture.openServer()));
      afterAll(() => fixture.close());
      tests(fixture);
    });
  }
}

/** As for one server, but its queue entry lacks the TTL of a grant by reply. */
export function requester(...options: Parameters<typeof askerOfOneServer>): Requester {
  const { token, entryTail: exclusive } = askerOfOneServer(...options);
  const entryTail = exclusive.slice(0, exclusive.lastIndexOf(" "));
  return { token, entryTail, member: `${token} ${entryTail}` };
}

/** The key of a lock's own counter. */
export function fenceOf([, , , fence = ""]: LockKeys): string {
  return fence;
}

/** A node of a quorum for the tests of one group, with a subscriber to its notifications. */
export class QuorumScriptFixture {
  data!: Data;
  connection!: Connection;
  readonly #logs = new Map<number, NotificationLog>();
  readonly #keySpace = new KeySpace("", "lock:", true);
  #server: RedisServer | undefined;
  #made = 0;

  openFake(): void {
    const server = new FakeRedis({ clock: systemClock });
    this.connection = server.connect();
    this.data = dataOf(server);
  }

  async openServer(): Promise<void> {
    this.#server = await startRedis();
    const redis = this.#server.client();
    this.connection = detectConnection(redis);
    this.data = {
      get: (key) => redis.get(key),
      set: (key, value) => redis.set(key, value),
      del: (key) => redis.del(key),
      pttl: (key) => redis.pttl(key),
      pexpire: (key, ttlMs) => redis.pexpire(key, ttlMs),
      hgetall: (key) => redis.hgetall(key),
      hset: (key, field, value) => redis.hset(key, field, value),
      zadd: (key, score, member) => redis.zadd(key, score, member),
      zrange: (key) => redis.zrange(key, "0", "-1"),
      setMemoryFull: (isFull) => redis.config("SET", "maxmemory", isFull ? "1" : "0"),
    };
  }

  async close(): Promise<void> {
    await this.#server?.stop();
  }

  /** The keys of a lock that no other test uses. */
  lock(): LockKeys {
    this.#made += 1;
    return this.#keySpace.keysOf(`k${this.#made}`);
  }

  /** The head of the reply, and the results. */
  async call(
    operations: readonly Operation[],
    bound = 100_000,
  ): Promise<{ header: unknown; answers: ScriptReply[] }> {
    const allOperations = operations.map(([, own, candidate]) => ({
      args: withProposedFence(inTime(own), String(candidate)),
    }));
    const keys = operations.flatMap(([own]) => own);
    const args = [String(retentionMs), String(bound), String(waitMs), encode(allOperations)];
    const [header, ...answers] = (await this.connection.run(executeQuorumScript, keys, args)) as unknown[];
    return { header, answers: operations.map(([, own], i) => wholeCommand(own, answers[i], true)) };
  }

  /** The result of one operation. @param candidate the proposed fencing token; by default the lowest that the server accepts */
  async run(keys: LockKeys, args: readonly string[], candidate = 0, bound?: number): Promise<ScriptReply> {
    return (await this.call([[keys, args, candidate]], bound)).answers[0] as ScriptReply;
  }

  /** Sends an acquire that does not queue, and expects the grant. */
  async grant(
    keys: LockKeys,
    requester: Requester,
    options?: AcquireOptions,
  ): Promise<{ first: number; last: number }> {
    const [status, first, last] = await this.run(keys, acquireOf(requester, options), await this.micros());
    if (status !== 1) {
      throw new Error(`Expected a grant, got ${String(status)}`);
    }
    return { first: Number(first), last: Number(last) };
  }

  /** Sends an acquire that queues. */
  queue(keys: LockKeys, clients: Requester): Promise<ScriptReply> {
    return this.run(keys, acquireOf(clients, { wait: "1" }));
  }

  /** The server's time. */
  async micros(): Promise<number> {
    return Number((await this.#greet("none", "n", ""))[0]);
  }

  /** Subscribes to the notifications of the client. */
  async listen(client: number, kind: "s" | "p" = "s"): Promise<void> {
    if (this.#logs.has(client)) {
      await this.received(client);
      return;
    }
    const messages: string[] = [];
    this.#logs.set(client, { kind, messages });
    await new Promise<void>((resolve) => {
      this.connection.subscribe(channelOf(id(client)), kind === "s" ? "sharded" : "plain", {
        connected: resolve,
        disconnected: () => undefined,
        message: (text) => messages.push(text),
      });
    });
  }

  /** Returns the notifications that the client has received, and clears the log. */
  async received(client: number): Promise<string[]> {
    const log = this.#logs.get(client);
    if (!log) {
      throw new Error(`client ${client} has no listener`);
    }
    this.#made += 1;
    const last = `last ${this.#made}`;
    await this.#greet(channelOf(id(client)), log.kind, last);
    await waitUntil(() => log.messages.includes(last), "the fixture's own notification");
    return log.messages.splice(0).filter((text) => text !== last);
  }

  async #greet(channel: string, kind: "s" | "p" | "n", text: string): Promise<unknown[]> {
    const args = [channel, kind, text, "60000", "owner", "a test"];
    return (await this.connection.run(handshakeScript, ["holdfast:client:test"], args)) as unknown[];
  }
}

/** The default of the latest time at which an operation may be executed is far in the future. */
function inTime(args: readonly string[]): readonly string[] {
  const isDue = ["acquire", "yield"].includes(args[0] ?? "") && args.length === 7;
  return isDue ? [...args, String(Number.MAX_SAFE_INTEGER)] : args;
}

function dataOf(server: FakeRedis): Data {
  return {
    get: async (key) => server.get(key),
    set: async (key, value) => {
      server.set(key, value);
    },
    del: async (key) => {
      server.del(key);
    },
    pttl: async (key) => Number(server.call("PTTL", key)),
    pexpire: async (key, ttlMs) => server.call("PEXPIRE", key, ttlMs),
    hgetall: async (key) => {
      const found = server.dump(key);
      return found?.type === "hash" ? Object.fromEntries(found.value) : {};
    },
    hset: async (key, field, value) => server.call("HSET", key, field, value),
    zadd: async (key, score, member) => server.call("ZADD", key, score, member),
    zrange: async (key) => server.call("ZRANGE", key, 0, -1) as string[],
    setMemoryFull: async (isFull) => server.setMemoryFull(isFull),
  };
}
