import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { setTimeout as pause } from "node:timers/promises";

import type { Redis } from "ioredis";
import type { RedisServer } from "@holdfast/test-kit";

import type { Clock } from "../../src/runtime/clock.ts";
import { detectConnection } from "../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../src/drivers/redis/clients/connection.ts";
import { channelOf, counterKey, KeySpace, type LockKeys } from "../../src/drivers/redis/protocol/keys.ts";
import {
  executeSingleScript,
  executeQuorumScript,
} from "../../src/drivers/redis/protocol/scripts.generated.ts";
import { requester, id, retentionMs, ScriptFixture } from "../support/script-fixture.ts";
import { argumentsOf } from "./arguments.ts";
import { changes } from "./changes.ts";
import { clientCount, lockCount, type Operation } from "./operations.ts";
import type { Step } from "./steps.ts";
import { encode, withProposedFence } from "../../src/drivers/redis/protocol/operation.ts";

/** The result of a step on one server, as far as both servers must agree. */
export interface Seen {
  /** The head of the reply, without the uptime, which differs. */
  readonly header: unknown;
  readonly answers: readonly unknown[];
  /** The messages of each client. */
  readonly messages: readonly (readonly string[])[];
  /** The type, content and TTL of each key. */
  readonly data: readonly unknown[];
}

export interface Outcome {
  readonly real: Seen;
  readonly fake: Seen;
}

type Operating = Extract<Step, { type: "operate" }>;
type CommandPair = Pick<Seen, "header" | "answers">;

const nothing: CommandPair = { header: null, answers: [] };
const listening = ["s", "p"] as const;
/** The allowed clock difference, because a script on the real server takes time, and the machine may be busy. */
const toleranceMs = 500;

/** Executes the same steps on a real server and on a fake one. The fake clock is set to the time of the real execution. */
export class ServerPair {
  readonly #stage: ScriptFixture;
  readonly #redis: Redis;
  readonly #connection: Connection;
  /** The keys of each lock, and its counter. On a single server all locks share one counter. */
  #locks: readonly LockKeys[] = [];
  #fake: FakeRedis;
  #fakeConnection: Connection;
  #fakeMessages: string[][] = [];
  #micros = 0;

  private constructor(fixture: ScriptFixture, client: Redis) {
    this.#stage = fixture;
    this.#redis = fixture.redis;
    this.#connection = detectConnection(client);
    this.#fake = new FakeRedis({ clock: this.#clock });
    this.#fakeConnection = this.#fake.connect();
  }

  /** The scripts run as a user without other duties, so that tests can revoke the right to publish. */
  static async open(): Promise<ServerPair> {
    const fixture = await ScriptFixture.open();
    await fixture.redis.call("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "allchannels");
    for (const [client, kind] of listening.entries()) {
      await fixture.listen(client, kind);
    }
    return new ServerPair(fixture, clientOf(fixture.server));
  }

  close(): Promise<void> {
    return this.#stage.close();
  }

  async reset(isQuorum: boolean): Promise<void> {
    const space = new KeySpace("", "lock:", isQuorum);
    this.#locks = Array.from({ length: lockCount }, (_, n) => {
      const keys = space.keysOf(`k/${n}`);
      return isQuorum ? keys : [...keys, counterKey()];
    });
    await this.#mute(false);
    await this.#fill(false);
    await this.#redis.flushall();
    for (const client of listening.keys()) {
      await this.#stage.received(client); // messages of a sequence that failed in the middle
    }
    this.#fake = new FakeRedis({ clock: this.#clock });
    this.#fakeConnection = this.#fake.connect();
    this.#fakeMessages = Array.from({ length: clientCount }, () => []);
    for (const [client, kind] of listening.entries()) {
      this.#fakeConnection.subscribe(channelOf(id(client)), kind === "s" ? "sharded" : "plain", {
        connected: () => undefined,
        disconnected: () => undefined,
        message: (text) => this.#fakeMessages[client]?.push(text),
      });
    }
  }

  async run(step: Step): Promise<Outcome> {
    const [real, own] = step.type === "operate" ? await this.#operate(step) : await this.#change(step);
    const realMessages = await Promise.all(
      Array.from({ length: clientCount }, (_, client) => this.#stage.received(client)),
    );
    const fakeMessages = this.#fakeMessages.map((messages) => messages.splice(0));
    const [realData, fakeData] = await this.#data();
    return agree(
      { ...real, messages: realMessages, data: realData },
      { ...own, messages: fakeMessages, data: fakeData },
    );
  }

  async #operate({ operations, bound, isQuorum }: Operating): Promise<[CommandPair, CommandPair]> {
    const prepared = await Promise.all(operations.map((operation) => this.#prepare(operation, isQuorum)));
    const locks = operations.map(({ lock }) => this.#locks[lock] as LockKeys);
    const call = isQuorum ? callOfNode(locks, prepared, bound) : callOfOneServer(locks, prepared, bound);
    const [header, ...real] = (await this.#connection.run(...call)) as unknown[];
    this.#micros = Number(Array.isArray(header) ? header[0] : header);
    const [ownHeader, ...own] = (await this.#fakeConnection.run(...call)) as unknown[];
    const inOneOrder = (answers: unknown[]): unknown[] =>
      answers.map((answer, i) => (operations[i]?.name === "inspect" ? withWordsInOrder(answer) : answer));
    return [
      { header: withoutUptime(header), answers: inOneOrder(real) },
      { header: withoutUptime(ownHeader), answers: inOneOrder(own) },
    ];
  }

  async #prepare(operation: Operation, isQuorum: boolean): Promise<readonly string[]> {
    const { name, candidate } = operation;
    const keys = this.#locks[operation.lock] as LockKeys;
    const args = [name, ...(await argumentsOf(this.#redis, keys, operation, isQuorum))];
    return isQuorum ? withProposedFence(args, String(this.#micros + candidate)) : args;
  }

  async #change(step: Exclude<Step, Operating>): Promise<[CommandPair, CommandPair]> {
    if (step.type === "mute") {
      await this.#mute(step.fails);
      return [nothing, nothing];
    } else if (step.type === "fill") {
      await this.#fill(step.isFull);
      return [nothing, nothing];
    }
    const keys = "lock" in step ? (this.#locks[step.lock] as LockKeys) : undefined;
    const commands = changes(step, keys, this.#micros, (n) => requester(1_000 + n, { client: 2 }).member);
    const micros = await this.#redis.eval(runAll, 0, JSON.stringify(commands));
    this.#micros = Number(micros);
    for (const [name, ...args] of commands) {
      this.#fake.call(name, ...args);
    }
    if (step.type === "expire") {
      await pause(3); // keys with a TTL of 1 ms have expired on both servers
    }
    return [nothing, nothing];
  }

  async #mute(fails: boolean): Promise<void> {
    await this.#redis.call("ACL", "SETUSER", "app", fails ? "resetchannels" : "allchannels");
    this.#fake.failPublish(fails);
  }

  async #fill(isFull: boolean): Promise<void> {
    await this.#redis.config("SET", "maxmemory", isFull ? "1" : "0");
    this.#fake.setMemoryFull(isFull);
  }

  async #data(): Promise<[unknown[], unknown[]]> {
    const keys = Array.from(new Set(this.#locks.flat()));
    const [micros, ...real] = (await this.#redis.eval(dumpAll, keys.length, ...keys)) as [
      number,
      ...unknown[],
    ];
    this.#micros = micros;
    const own = keys.map((key) => {
      const stored = this.#fake.dump(key);
      if (!stored) {
        return ["none"];
      }
      const { type, value, ttlMs } = stored;
      return [type, typeof value === "string" ? value : value.flat().map(String), ttlMs];
    });
    return [real.map(inOrder), own.map(inOrder)];
  }

  get #clock(): Clock {
    return {
      now: () => this.#micros / 1000,
      wall: () => this.#micros / 1000,
      setTimer: () => undefined,
      clearTimer: () => undefined,
    };
  }
}

type Arguments = readonly (readonly string[])[];
type ScriptCall = Parameters<Connection["run"]>;

function callOfNode(locks: readonly LockKeys[], operations: Arguments, bound: number): ScriptCall {
  const args = [String(retentionMs), String(bound), "600", encode(operations.map((own) => ({ args: own })))];
  return [executeQuorumScript, locks.flat(), args];
}

/** Calls the script like a client: a single operation passes its arguments unencoded. */
function callOfOneServer(locks: readonly LockKeys[], operations: Arguments, bound: number): ScriptCall {
  const keys = [counterKey(), ...locks.flatMap((own) => own.slice(0, 3))];
  const [lone, ...others] = operations;
  const isLone = lone !== undefined && others.length === 0;
  const args = isLone ? lone : [encode(operations.map((own) => ({ args: own })))];
  return [executeSingleScript, keys, [String(bound), ...args]];
}

function clientOf(server: RedisServer): Redis {
  return server.client({ username: "app", password: "any" });
}

function withoutUptime(header: unknown): unknown {
  return Array.isArray(header) ? [...header.slice(0, 2), typeof header[2]] : header;
}

function inOrder(dumped: unknown): unknown {
  const [type, value, ttlMs] = dumped as [string, string[], number];
  return type === "hash" ? [type, fieldsInOrder(value).map(inParts), ttlMs] : dumped;
}

/** The memory of a holder and the start of a vote end in a time, which may differ by some ms. */
function inParts(field: string): unknown {
  const [, said, time] = /^((?:by|h\S+)=.* |(?:notBefore|alone)=)(\d{13})$/.exec(field) ?? [];
  return said === undefined ? field : [said, Number(time) - epochMs];
}

function withWordsInOrder(answer: unknown): unknown {
  const list = answer as unknown[];
  return list[0] === "error" ? list : list.with(4, fieldsInOrder(list[4] as string[]));
}

/** A hash has no order. */
function fieldsInOrder(pairs: readonly string[]): string[] {
  return Array.from({ length: pairs.length / 2 }, (_, i) => `${pairs[2 * i]}=${pairs[2 * i + 1]}`).toSorted();
}

/** Replaces the fake server's times by the real ones if the difference is allowed. */
function agree(real: Seen, own: Seen): Outcome {
  return { real: plain(real, real) as Seen, fake: plain(own, real) as Seen };
}

const epochMs = Date.now() - 86_400_000;
const runId = /^[\da-f]{40}$/;

function plain(value: unknown, real: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item, i) => plain(item, Array.isArray(real) ? real[i] : undefined));
  } else if (typeof value === "object" && value !== null) {
    const other = Object(real) as Record<string, unknown>;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item, other[name])]));
  } else if (typeof value === "string") {
    const words = value.split(" ");
    return words.map((word) => (runId.test(word) ? "run id" : word)).join(" ");
  } else if (typeof value === "number" && typeof real === "number") {
    const isTime = value > 100 && real > 100 && Math.abs(value - real) <= toleranceMs;
    return isTime && value < 1e12 ? real : value;
  }
  return value;
}

/** After its first write a script is refused nothing, also by a server with full memory. */
const runAll = `
redis.call('DEL', 'nothing')
for _, command in ipairs(cjson.decode(ARGV[1])) do redis.call(unpack(command)) end
local time = redis.call('TIME')
return time[1] * 1000000 + time[2]`;

const dumpAll = `
local read = {
  string = function(key) return redis.call('GET', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  hash = function(key) return redis.call('HGETALL', key) end,
}
local time = redis.call('TIME')
local found = { time[1] * 1000000 + time[2] }
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  found[i + 1] = kind == 'none' and { kind } or { kind, read[kind](key), redis.call('PTTL', key) }
end
return found`;
