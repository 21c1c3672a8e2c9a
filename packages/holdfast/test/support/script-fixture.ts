import type { Redis } from "ioredis";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../src/drivers/redis/clients/connection.ts";
import { channelOf, counterKey, KeySpace, type LockKeys } from "../../src/drivers/redis/protocol/keys.ts";
import { executeSingleScript } from "../../src/drivers/redis/protocol/scripts.generated.ts";
import { callOfServer } from "../../src/drivers/redis/protocol/operation.ts";
import { wholeCommand } from "./diagnostics-log.ts";

export const retentionMs = 3_600_000;
/** A time after all times of a test. */
const noDeadline = 9_999_999_999_999;
const keySpace = new KeySpace("", "lock:");

/** 32 hex digits that end in `n`, for an attempt or a client. */
export function id(n: number): string {
  return n.toString(16).padStart(32, "0");
}

/** A token with the fields of its queue entry. */
export interface Requester {
  readonly token: string;
  readonly entryTail: string;
  readonly member: string;
}

interface RequesterOptions {
  readonly client?: number;
  readonly ticket?: number;
  /** The mode of a shared lock. */
  readonly lockMode?: string;
  readonly ttlMs?: number;
  readonly fencingCount?: number;
  readonly deadline?: number;
  readonly kind?: "s" | "p";
}

export function requester(attempt: number, options: RequesterOptions = {}): Requester {
  const {
    client = attempt,
    ticket = attempt,
    ttlMs = 3_000,
    fencingCount = 1,
    deadline = 0,
    kind = "s",
  } = options;
  const lockMode = options.lockMode === undefined ? "" : `${options.lockMode}:`;
  const token = `${id(attempt)}:${id(client)}:${lockMode}${ticket}`;
  const entryTail = `${ttlMs} ${fencingCount} ${deadline} ${kind} ${ttlMs}`;
  return { token, entryTail, member: `${token} ${entryTail}` };
}

export interface AcquireOptions {
  readonly ttlMs?: number;
  readonly fencingCount?: number;
  readonly wait?: "0" | "1" | "2" | "3" | "4";
  readonly metadata?: string;
  /** Server time in ms. */
  readonly latest?: number;
}

export function acquireOf({ token, entryTail }: Requester, options: AcquireOptions = {}): string[] {
  const { ttlMs = 30_000, fencingCount = 1, wait = "0", metadata = "", latest = noDeadline } = options;
  return ["acquire", token, entryTail, String(ttlMs), String(fencingCount), wait, metadata, String(latest)];
}

export type ScriptReply = readonly unknown[];

/** A real server for the tests of one file, its scripts, and a subscriber to its notifications. */
export class ScriptFixture {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly connection: Connection;
  readonly #messages = new Map<string, string[]>();
  readonly #subscriber: Redis;
  #keys = 0;

  private constructor(server: RedisServer, redis: Redis, subscriber: Redis) {
    this.server = server;
    this.redis = redis;
    this.connection = detectConnection(redis);
    this.#subscriber = subscriber;
    for (const event of ["message", "smessage"]) {
      subscriber.on(event, (channel: string, text: string) => {
        this.#messages.get(channel)?.push(text);
      });
    }
  }

  static async open(
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<ScriptFixture> {
    const server = await startRedis({ args, env });
    return new ScriptFixture(server, server.client(), server.client());
  }

  close(): Promise<void> {
    return this.server.stop();
  }

  /** The keys of a lock that no other test uses. */
  lock(): LockKeys {
    this.#keys += 1;
    return keySpace.keysOf(`k${this.#keys}`);
  }

  /** The token that holds a mutex. Null without a holder. */
  async holder([K]: LockKeys): Promise<string | null> {
    return (await this.redis.get(K))?.split(" ")[0] ?? null;
  }

  /** The fencing tokens of the grant that holds a mutex. */
  async numbersOf([K]: LockKeys): Promise<{ first: number; last: number }> {
    const [, first, count] = (await this.redis.get(K))?.split(" ") ?? [];
    return { first: Number(first), last: Number(first) + Number(count) - 1 };
  }

  /** The last fencing token of the server's counter. 0 without a counter. */
  async counter(): Promise<number> {
    return Number(await this.redis.get(counterKey()));
  }

  /** The number of writes since the start of the server. Each of them is sent to the replicas. */
  async changes(): Promise<number> {
    const info = await this.redis.info("persistence");
    return Number(/^rdb_changes_since_last_save:(\d+)/m.exec(info)?.[1]);
  }

  /** The result of one operation. */
  async run(
    keys: LockKeys,
    args: readonly string[],
    settings: { bound?: number } = {},
  ): Promise<ScriptReply> {
    return (await this.batch([[keys, args]], settings))[0] as ScriptReply;
  }

  /** The results of several operations in one call. */
  async batch(
    operations: readonly (readonly [LockKeys, readonly string[]])[],
    { bound = 100_000, connection = this.connection }: { bound?: number; connection?: Connection } = {},
  ): Promise<ScriptReply[]> {
    const call = callOfServer(
      operations.map(([keys, args]) => ({ keys, args })),
      counterKey(),
      String(bound),
    );
    const reply = await connection.run(executeSingleScript, call.keys, call.args);
    const answers = Array.isArray(reply)
      ? reply.slice(1)
      : [operations[0]?.[1][0] === "acquire" ? (reply as unknown) : 1];
    return operations.map(([, own], i) => wholeCommand(own, answers[i], false));
  }

  /** Sends an acquire that does not queue, and expects the grant. */
  async grant(
    keys: LockKeys,
    requester: Requester,
    options?: AcquireOptions,
  ): Promise<{ first: number; last: number }> {
    const [status, first, last] = await this.run(keys, acquireOf(requester, options));
    if (status !== 1) {
      throw new Error(`Expected a grant, got ${String(status)}`);
    }
    return { first: Number(first), last: Number(last) };
  }

  /** Sends an acquire that queues. */
  queue(keys: LockKeys, clients: Requester, options?: AcquireOptions): Promise<ScriptReply> {
    return this.run(keys, acquireOf(clients, { wait: "1", ...options }));
  }

  /** Subscribes to the notifications of the client. */
  async listen(client: number, kind: "s" | "p" = "s"): Promise<void> {
    const channel = channelOf(id(client));
    this.#messages.set(channel, []);
    await (kind === "s" ? this.#subscriber.ssubscribe(channel) : this.#subscriber.subscribe(channel));
  }

  /** Returns the notifications that the client has received, and clears the log. */
  async received(client: number): Promise<string[]> {
    await this.#subscriber.ping(); // the server has answered everything before it
    return this.#messages.get(channelOf(id(client)))?.splice(0) ?? [];
  }
}
