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
  /** Its wall clock is the server's, within a millisecond: what scripts read, and what keys expire by. */
  readonly clock: Clock;
  /** What the server says it is. Below 7 it has no sharded pub/sub. @defaultValue "7.0.15" */
  readonly version?: string | undefined;
  /** For the run id. */
  readonly random?: Random | undefined;
  /** The readable name of its connections. @defaultValue "fake" */
  readonly name?: string | undefined;
  /** Whether it says that each write is on disk before it is answered: `appendonly yes`, `appendfsync always`. @defaultValue false */
  readonly durable?: boolean | undefined;
  /** A `slave` refuses what a script wants to write. @defaultValue "master" */
  readonly role?: Role | undefined;
  /** How long it says that it has been up when it is made. @defaultValue 0 */
  readonly upForMs?: number | undefined;
  /** What it says; it never evicts a key. @defaultValue "noeviction" */
  readonly maxmemoryPolicy?: string | undefined;
  /** What it says, in bytes; 0: no limit. @defaultValue 0 */
  readonly maxmemory?: number | undefined;
  /** Whether its user may not run CONFIG. @defaultValue false */
  readonly refuseConfig?: boolean | undefined;
}

type Role = "master" | "slave";

/** One interpreter for all servers of this process: scripts keep nothing from one run to the next. */
let interpreter: Lua | undefined;

/**
 * A Redis in this process: it runs Lua scripts, by the same interpreter as Redis, and the commands that Holdfast's scripts call,
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
    this.#server = this.#seenByCommands();
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

  /** Runs a command at once, as an operator would; also one that writes to a replica. @throws {ServerError} */
  call(name: string, ...args: readonly (string | number)[]): unknown {
    return answerOf(this.#perform([name, ...args.map((arg) => toBytes(String(arg)))], { mayWrite: true }));
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

  /** A new run of the server: all connections are lost and made again, what is under way is not answered. It is up since now. */
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

  /** It is promoted, or made a replica: another replication id, the same run. Connections stay, as they do there. */
  setRole(role: Role): void {
    if (role !== this.#role) {
      this.#role = role;
      this.#replicationId = this.#newId();
    }
  }

  /** Whether it says that each write is on disk before it is answered. What `restart` keeps does not depend on it. */
  setDurable(isDurable: boolean): void {
    this.#isDurable = isDurable;
  }

  /** Whether CONFIG is refused from now on, as to a user who may not run it. */
  refuseConfig(refuses: boolean): void {
    this.#mayConfigure = !refuses;
  }

  /** Whether publishing is refused from now on, as where the user may not use our channels. */
  failPublish(fails: boolean): void {
    this.pubSub.mayPublish = !fails;
  }

  /** Messages for which the predicate says so are counted as received and never arrive. Replaces the one before; null: none is lost. */
  dropMessages(predicate: MessagePredicate | null): void {
    this.pubSub.isDropped = predicate ?? (() => false);
  }

  execute(script: Script, keys: readonly string[], args: readonly string[]): unknown {
    interpreter ??= new Lua();
    const mayWrite = this.#role === "master";
    this.#frozenAt = this.#clock.micros();
    try {
      const call = (argv: readonly string[]): Reply => this.#perform(argv, { mayWrite, inScript: true });
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
    circumstances: Pick<CommandContext, "mayWrite"> & Partial<CommandContext>,
  ): Reply {
    return execute(this.#server, argv, { inScript: false, hasShards: this.hasShards, ...circumstances });
  }

  get #version(): string {
    return this.#options.version ?? "7.0.15";
  }

  #micros(): number {
    return this.#frozenAt ?? this.#clock.micros();
  }

  #seenByCommands(): Server {
    return {
      store: this.#store,
      pubSub: this.pubSub,
      micros: () => this.#micros(),
      info: (section) => this.#info(section),
      config: () =>
        this.#mayConfigure ? { appendfsync: this.#isDurable ? "always" : "everysec" } : undefined,
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
        return { aof_enabled: this.#isDurable ? 1 : 0 };
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

  /** 40 hex digits, as Redis has them. */
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
