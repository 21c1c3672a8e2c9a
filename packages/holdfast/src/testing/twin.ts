import type { Clock } from "../clock.ts";
import type { Connection } from "../drivers/redis/connection.ts";
import type { Script } from "../drivers/redis/script.ts";
import { systemRandom, type Random } from "../random.ts";
import { clients } from "./twin/clients.ts";
import { command } from "./twin/command.ts";
import { TwinConnection, type Host } from "./twin/connection.ts";
import { hello } from "./twin/hello.ts";
import { operate } from "./twin/operate.ts";
import { PubSub, type MessagePredicate } from "./twin/pub-sub.ts";
import { scan } from "./twin/scan.ts";
import { ServerClock } from "./twin/server-clock.ts";
import { standing } from "./twin/standing.ts";
import { together } from "./twin/together.ts";
import type { Answer, Server, Standing } from "./twin/state.ts";
import { Store, type Stored } from "./twin/store.ts";

export interface TwinOptions {
  /** Its wall clock is the server's, within a millisecond: what scripts read, and what keys expire by. */
  readonly clock: Clock;
  /** What the server says it is. Below 7 it has no sharded pub/sub. @defaultValue "7.0.15" */
  readonly version?: string | undefined;
  /** For the run id. */
  readonly random?: Random | undefined;
  /** The readable name of its connections. @defaultValue "twin" */
  readonly name?: string | undefined;
  /** Whether it says that each write is on disk before it is answered: `appendonly yes`, `appendfsync always`. @defaultValue false */
  readonly durable?: boolean | undefined;
  /** A `slave` refuses what a script wants to write. @defaultValue "master" */
  readonly role?: Standing["role"] | undefined;
  /** How long it says that it has been up when it is made. @defaultValue 0 */
  readonly upForMs?: number | undefined;
  /** What it says; it never evicts a key. @defaultValue "noeviction" */
  readonly maxmemoryPolicy?: string | undefined;
  /** What it says, in bytes; 0: no limit. @defaultValue 0 */
  readonly maxmemory?: number | undefined;
  /** Whether its user may not run CONFIG. @defaultValue false */
  readonly refuseConfig?: boolean | undefined;
}

/**
 * A server in this process that answers Holdfast's scripts as Redis does: the same replies and errors, the same messages, the
 * same data. A property test holds it against a real server. It knows these scripts and no command but CONFIG GET, and a script takes no time.
 */
export interface Twin {
  /** Changes with every restart. */
  readonly runId: string;
  /** The data, to be read and changed behind the scripts' back by what are Redis' commands of the same names. */
  readonly store: Store;
  /** Opens a connection, as another process would. */
  connect(options?: { readonly keyPrefix?: string | undefined }): Connection;

  set(key: string, value: string, ttlMs?: number): void;
  get(key: string): string | null;
  del(...keys: readonly string[]): number;
  keys(): string[];
  flushAll(): void;
  /** All that a key holds, with what is left of its TTL; undefined: there is no such key. */
  dump(key: string): Stored | undefined;

  /** A new run of the server: all connections are lost and made again, what is under way is not answered. It is up since now. */
  restart(options: { readonly keepData: boolean }): void;
  /** It is promoted, or made a replica: another replication id, the same run. Connections stay, as they do there. */
  setRole(role: Standing["role"]): void;
  /** Whether it says that each write is on disk before it is answered. What `restart` keeps does not depend on it. */
  setDurable(isDurable: boolean): void;
  /** Whether CONFIG is refused from now on, as to a user who may not run it. */
  refuseConfig(refuses: boolean): void;
  /** Whether publishing is refused from now on, as where the user may not use our channels. */
  failPublish(fails: boolean): void;
  /** Messages for which the predicate says so are counted as received and never arrive. Replaces the one before; null: none is lost. */
  dropMessages(predicate: MessagePredicate | null): void;
}

export function twin(options: TwinOptions): Twin {
  return new TwinServer(options);
}

const scripts: Readonly<
  Record<string, (server: Server, keys: readonly string[], args: readonly string[]) => Answer>
> = { operate, hello, clients, scan, standing, together };

class TwinServer implements Twin, Server, Host {
  readonly version: string;
  readonly pubSub: PubSub = new PubSub();
  readonly store: Store;
  runId: string;
  readonly #clock: ServerClock;
  readonly #random: Random;
  readonly #connections = new Set<TwinConnection>();
  readonly #name: string;
  #standing: Standing;
  #mayConfigure: boolean;
  #startedAt: number;
  /** Time stands still while a script runs: what is there as it begins does not expire on the way. */
  #frozenAt: number | undefined;

  constructor(options: TwinOptions) {
    this.version = options.version ?? "7.0.15";
    this.#name = options.name ?? "twin";
    this.#clock = new ServerClock(options.clock);
    this.#random = options.random ?? systemRandom;
    this.#mayConfigure = options.refuseConfig !== true;
    this.store = new Store(() => this.micros());
    this.runId = this.#newId();
    this.#startedAt = this.micros() - (options.upForMs ?? 0) * 1000;
    this.#standing = {
      role: options.role ?? "master",
      replicationId: this.#newId(),
      isDurable: options.durable ?? false,
      maxmemoryPolicy: options.maxmemoryPolicy ?? "noeviction",
      maxmemory: options.maxmemory ?? 0,
    };
  }

  get standing(): Standing {
    return this.#standing;
  }

  connect({ keyPrefix = "" }: { readonly keyPrefix?: string | undefined } = {}): Connection {
    const connection = new TwinConnection(this, this.#name, keyPrefix);
    this.#connections.add(connection);
    return connection;
  }

  execute(script: Script, keys: readonly string[], args: readonly string[]): Answer {
    const run = scripts[script.name];
    if (!run) {
      throw new TypeError(`Expected a script that the twin knows, got ${script.name}`);
    }
    this.store.isReadOnly = this.#standing.role === "slave";
    this.#frozenAt = this.#clock.micros();
    try {
      return run(this, keys, args);
    } finally {
      this.#frozenAt = undefined;
      this.store.isReadOnly = false;
    }
  }

  command(name: string, args: readonly string[]): unknown {
    return command(this, this.#mayConfigure, name, args);
  }

  micros(): number {
    return this.#frozenAt ?? this.#clock.micros();
  }

  uptimeSeconds(): number {
    return Math.floor((this.micros() - this.#startedAt) / 1_000_000);
  }

  set(key: string, value: string, ttlMs?: number): void {
    this.store.set(key, value, ttlMs);
  }

  get(key: string): string | null {
    return this.store.get(key);
  }

  del(...keys: readonly string[]): number {
    return this.store.del(...keys);
  }

  keys(): string[] {
    return this.store.keys();
  }

  flushAll(): void {
    this.store.flushAll();
  }

  dump(key: string): Stored | undefined {
    return this.store.dump(key);
  }

  restart({ keepData }: { readonly keepData: boolean }): void {
    this.runId = this.#newId();
    this.#standing = { ...this.#standing, replicationId: this.#newId() };
    this.#startedAt = this.micros();
    if (!keepData) {
      this.store.flushAll();
    }
    this.store.flushes = 0;
    for (const connection of this.#connections) {
      connection.drop();
    }
  }

  setRole(role: Standing["role"]): void {
    if (role !== this.#standing.role) {
      this.#standing = { ...this.#standing, role, replicationId: this.#newId() };
    }
  }

  setDurable(isDurable: boolean): void {
    this.#standing = { ...this.#standing, isDurable };
  }

  refuseConfig(refuses: boolean): void {
    this.#mayConfigure = !refuses;
  }

  failPublish(fails: boolean): void {
    this.pubSub.mayPublish = !fails;
  }

  dropMessages(predicate: MessagePredicate | null): void {
    this.pubSub.isDropped = predicate ?? (() => false);
  }

  /** 40 hex digits, as Redis has them. */
  #newId(): string {
    return (this.#random.id() + this.#random.id()).slice(0, 40);
  }
}
