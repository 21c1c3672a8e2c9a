import { randomBytes } from "node:crypto";

import type { Clock, Random } from "holdfast";
import type { Connection } from "holdfast/redis";

import { fromBytes, toBytes } from "./bytes.ts";
import type { Server } from "./commands/command.ts";
import { execute, type CommandContext } from "./commands/perform.ts";
import { FakeConnection, type Host, type Script } from "./connection.ts";
import { Lua } from "./lua/lua.ts";
import { PubSub, type MessagePredicate } from "./pub-sub.ts";
import { ServerError, Status, type Reply } from "./reply.ts";
import { ServerClock } from "./server-clock.ts";
import { Store, type Stored } from "./store.ts";

export interface FakeRedisOptions {
  /** The server's clock follows this wall clock within a millisecond. Scripts read the server's clock, and keys expire by it. */
  readonly clock: Clock;
  /** The version that the server reports. Versions below 7 have no sharded pub/sub. @defaultValue "7.0.15" */
  readonly version?: string | undefined;
  /** The source of the run id. */
  readonly random?: Random | undefined;
  /** The readable name of the connections. @defaultValue "fake" */
  readonly name?: string | undefined;
  /**
   * Whether the server reports that each write is on disk before its reply: `appendonly yes`, `appendfsync always`.
   * @defaultValue false
   */
  readonly durable?: boolean | undefined;
  /** A `slave` rejects the writes of scripts. @defaultValue "master" */
  readonly role?: Role | undefined;
  /** The uptime that the server reports at its creation. @defaultValue 0 */
  readonly upForMs?: number | undefined;
  /** The reported eviction policy. The server never evicts a key. @defaultValue "noeviction" */
  readonly maxmemoryPolicy?: string | undefined;
  /** The reported memory limit in bytes; 0: no limit. @defaultValue 0 */
  readonly maxmemory?: number | undefined;
  /** Whether the server rejects CONFIG, as for a user without that permission. @defaultValue false */
  readonly refuseConfig?: boolean | undefined;
}

type Role = "master" | "slave";

/** One interpreter serves all servers of this process, because scripts keep no state between runs. */
let interpreter: Lua | undefined;

/**
 * A Redis server in this process. It runs Lua scripts with the interpreter of Redis, and the commands that Holdfast's scripts call,
 * with the same replies and errors. A property test compares it with a real server. Time stands still while a script runs.
 */
export class FakeRedis implements Host {
  readonly pubSub: PubSub = new PubSub();
  readonly #options: FakeRedisOptions;
  readonly #clock: ServerClock;
  readonly #store: Store;
  readonly #server: Server;
  readonly #connections = new Set<FakeConnection>();
  #runId: string;
  #replicationId: string;
  #role: Role;
  #isDurable: boolean;
  #mayConfigure: boolean;
  #isMemoryFull = false;
  #startedAt: number;
  #flushes = 0;
  #frozenAt: number | undefined;

  constructor(options: FakeRedisOptions) {
    this.#options = options;
    this.#clock = new ServerClock(options.clock);
    this.#store = new Store(() => this.#micros());
    this.#runId = this.#newId();
    this.#startedAt = this.#micros() - (options.upForMs ?? 0) * 1000;
    this.#replicationId = this.#newId();
    this.#role = options.role ?? "master";
    this.#isDurable = options.durable ?? false;
    this.#mayConfigure = options.refuseConfig !== true;
    this.#server = this.#commandServer();
  }

  /** Changes with every restart. */
  get runId(): string {
    return this.#runId;
  }

  get hasShards(): boolean {
    return Number.parseInt(this.#version, 10) >= 7;
  }

  /** Opens a connection, as another process would. */
  connect({ keyPrefix = "" }: { readonly keyPrefix?: string | undefined } = {}): Connection {
    const connection = new FakeConnection(this, this.#options.name ?? "fake", keyPrefix);
    this.#connections.add(connection);
    return connection;
  }

  /** Runs a command at once, also one that writes to a replica or to a full memory. @throws {ServerError} */
  call(name: string, ...args: readonly (string | number)[]): unknown {
    const argv = [name, ...args.map((arg) => toBytes(String(arg)))];
    return answerOf(this.#perform(argv, { mayWrite: true, isMemoryFull: false }));
  }

  set(key: string, value: string, ttlMs?: number): void {
    this.call("SET", key, value, ...(ttlMs === undefined ? [] : ["PX", ttlMs]));
  }

  get(key: string): string | null {
    return this.call("GET", key) as string | null;
  }

  hget(key: string, field: string): string | undefined {
    return (this.call("HGET", key, field) as string | null) ?? undefined;
  }

  del(...keys: readonly string[]): void {
    this.call("DEL", ...keys);
  }

  flushAll(): void {
    this.call("FLUSHALL");
  }

  keys(): string[] {
    return this.#store.keys().map(fromBytes);
  }

  /** All that a key holds; undefined: there is no such key. */
  dump(key: string): Stored | undefined {
    const stored = this.#store.dump(toBytes(key));
    if (stored?.type === "string") {
      return { ...stored, value: fromBytes(stored.value) };
    } else if (stored?.type === "hash") {
      return { ...stored, value: stored.value.map(([field, value]) => [fromBytes(field), fromBytes(value)]) };
    }
    return stored && { ...stored, value: stored.value.map(([member, score]) => [fromBytes(member), score]) };
  }

  /** Restarts the server: all connections are lost and made again, requests under way get no reply, and the uptime begins at 0. */
  restart({ keepData }: { readonly keepData: boolean }): void {
    this.#runId = this.#newId();
    this.#replicationId = this.#newId();
    this.#startedAt = this.#micros();
    if (!keepData) {
      this.#store.clear();
    }
    this.#flushes = 0;
    for (const connection of this.#connections) {
      connection.drop();
    }
  }

  /**
   * Promotes the server or makes it a replica, with a new replication id in the same run. Connections stay open, as on a real
   * server.
   */
  setRole(role: Role): void {
    if (role !== this.#role) {
      this.#role = role;
      this.#replicationId = this.#newId();
    }
  }

  /** Sets whether the server reports that each write is on disk before its reply. `restart` does not depend on this setting. */
  setDurable(isDurable: boolean): void {
    this.#isDurable = isDurable;
  }

  /** Sets whether the server rejects CONFIG, as for a user without that permission. */
  refuseConfig(refuses: boolean): void {
    this.#mayConfigure = !refuses;
  }

  /**
   * Sets whether the server has reached `maxmemory` with the policy `noeviction`. Then it rejects SET, HSET and ZADD, as single commands
   * and as the first writes of a script.
   */
  setMemoryFull(isFull: boolean): void {
    this.#isMemoryFull = isFull;
  }

  /** Sets whether the server rejects PUBLISH and SPUBLISH, as for a user without permission for the channels. */
  failPublish(fails: boolean): void {
    this.pubSub.mayPublish = !fails;
  }

  /**
   * Messages for which the predicate returns true count as received and never arrive. A new predicate replaces the previous one;
   * `null`: no message is lost.
   */
  dropMessages(predicate: MessagePredicate | null): void {
    this.pubSub.isDropped = predicate ?? (() => false);
  }

  execute(script: Script, keys: readonly string[], args: readonly string[]): unknown {
    interpreter ??= new Lua();
    const mayWrite = this.#role === "master";
    this.#frozenAt = this.#clock.micros();
    try {
      const state = { hasWritten: false };
      const call = (argv: readonly string[]): Reply => this.#perform(argv, { mayWrite, script: state });
      return answerOf(interpreter.run(script, keys.map(toBytes), args.map(toBytes), call));
    } finally {
      this.#frozenAt = undefined;
    }
  }

  command(name: string, args: readonly string[]): unknown {
    const argv = [name, ...args].map(toBytes);
    return answerOf(this.#perform(argv, { mayWrite: this.#role === "master" }));
  }

  #perform(
    argv: readonly string[],
    context: Pick<CommandContext, "mayWrite"> & Partial<CommandContext>,
  ): Reply {
    return execute(this.#server, argv, {
      script: undefined,
      hasShards: this.hasShards,
      isMemoryFull: this.#isMemoryFull,
      ...context,
    });
  }

  get #version(): string {
    return this.#options.version ?? "7.0.15";
  }

  #micros(): number {
    return this.#frozenAt ?? this.#clock.micros();
  }

  #commandServer(): Server {
    return {
      store: this.#store,
      pubSub: this.pubSub,
      micros: () => this.#micros(),
      info: (section) => this.#info(section),
      config: () =>
        this.#mayConfigure
          ? { appendfsync: this.#isDurable ? "always" : "everysec", "no-appendfsync-on-rewrite": "no" }
          : undefined,
      flush: () => {
        this.#store.clear();
        this.#flushes += 1;
      },
    };
  }

  /** The fields of an INFO section that the scripts read. */
  #info(section: string): Readonly<Record<string, string | number>> | undefined {
    switch (section) {
      case "server":
        return {
          redis_version: this.#version,
          run_id: this.#runId,
          uptime_in_seconds: Math.floor((this.#micros() - this.#startedAt) / 1_000_000),
        };
      case "replication":
        return { role: this.#role, master_replid: this.#replicationId };
      case "persistence":
        return {
          aof_rewrite_in_progress: 0,
          aof_rewrite_scheduled: 0,
          aof_last_rewrite_time_sec: -1,
          aof_enabled: this.#isDurable ? 1 : 0,
        };
      case "memory": {
        const { maxmemory = 0, maxmemoryPolicy = "noeviction" } = this.#options;
        return { maxmemory, maxmemory_policy: maxmemoryPolicy };
      }
      case "commandstats":
        return this.#flushes === 0 ? {} : { cmdstat_flushall: `calls=${this.#flushes}` };
      default:
        return undefined;
    }
  }

  /** 40 hex digits, as in Redis. */
  #newId(): string {
    const { random } = this.#options;
    return random ? (random.id() + random.id()).slice(0, 40) : randomBytes(20).toString("hex");
  }
}

/** A reply in the form of a client library. */
function answerOf(reply: Reply): unknown {
  if (reply instanceof ServerError) {
    throw reply;
  }
  return withoutTypes(reply);
}

function withoutTypes(reply: Reply): unknown {
  if (typeof reply === "string") {
    return fromBytes(reply);
  } else if (reply instanceof Status) {
    return reply.text;
  }
  return isList(reply) ? reply.map(withoutTypes) : reply;
}

function isList(reply: Reply): reply is readonly Reply[] {
  return Array.isArray(reply);
}
