import type { Clock } from "../clock.ts";
import type { Connection } from "../drivers/redis/connection.ts";
import type { Script } from "../drivers/redis/script.ts";
import { systemRandom, type Random } from "../random.ts";
import { clients } from "./twin/clients.ts";
import { TwinConnection, type Host } from "./twin/connection.ts";
import { hello } from "./twin/hello.ts";
import { operate } from "./twin/operate.ts";
import { PubSub, type MessagePredicate } from "./twin/pub-sub.ts";
import { scan } from "./twin/scan.ts";
import { ServerClock } from "./twin/server-clock.ts";
import type { Answer, Server } from "./twin/state.ts";
import { Store, type Stored } from "./twin/store.ts";

export interface TwinOptions {
  /** Its wall clock is the server's, within a millisecond: what scripts read, and what keys expire by. */
  readonly clock: Clock;
  /** What the server says it is. Below 7 it has no sharded pub/sub. @defaultValue "7.0.15" */
  readonly version?: string | undefined;
  /** For the run id. */
  readonly random?: Random | undefined;
}

/**
 * A server in this process that answers Holdfast's scripts as Redis does: the same replies and errors, the same messages, the
 * same data. A property test holds it against a real server. It knows these scripts and no command, and a script takes no time.
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

  /** A new run of the server: all connections are lost and made again, what is under way is not answered. */
  restart(options: { readonly keepData: boolean }): void;
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
> = { operate, hello, clients, scan };

class TwinServer implements Twin, Server, Host {
  readonly version: string;
  readonly pubSub: PubSub = new PubSub();
  readonly store: Store;
  runId: string;
  readonly #clock: ServerClock;
  readonly #random: Random;
  readonly #connections = new Set<TwinConnection>();
  #startedAt: number;

  constructor({ clock, version = "7.0.15", random = systemRandom }: TwinOptions) {
    this.version = version;
    this.#clock = new ServerClock(clock);
    this.#random = random;
    this.store = new Store(() => this.micros());
    this.runId = this.#newRunId();
    this.#startedAt = this.micros();
  }

  connect({ keyPrefix = "" }: { readonly keyPrefix?: string | undefined } = {}): Connection {
    const connection = new TwinConnection(this, "twin", keyPrefix);
    this.#connections.add(connection);
    return connection;
  }

  execute(script: Script, keys: readonly string[], args: readonly string[]): Answer {
    const run = scripts[script.name];
    if (!run) {
      throw new TypeError(`Expected a script that the twin knows, got ${script.name}`);
    }
    return run(this, keys, args);
  }

  micros(): number {
    return this.#clock.micros();
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
    this.runId = this.#newRunId();
    this.#startedAt = this.micros();
    if (!keepData) {
      this.store.flushAll();
    }
    for (const connection of this.#connections) {
      connection.drop();
    }
  }

  failPublish(fails: boolean): void {
    this.pubSub.mayPublish = !fails;
  }

  dropMessages(predicate: MessagePredicate | null): void {
    this.pubSub.isDropped = predicate ?? (() => false);
  }

  /** 40 hex digits, as Redis has them. */
  #newRunId(): string {
    return (this.#random.id() + this.#random.id()).slice(0, 40);
  }
}
