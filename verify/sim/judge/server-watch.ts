import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { allReaders } from "../plan/lock-mode.ts";
import type { History } from "./history.ts";

/** What one server keeps of a key that several may hold, looked at from outside after everything that happens. */
export class ServerWatch {
  readonly #history: History;
  readonly #server: FakeRedis;
  readonly #key: string;
  #holders: ReadonlyMap<string, number> = new Map();
  #limit: number | undefined;

  constructor(history: History, server: FakeRedis, key: string) {
    this.#history = history;
    this.#server = server;
    this.#key = key;
  }

  /** Whoever is let in finds room beside all who are in: those whose time is over are out. */
  check(): void {
    const limit = this.#readLimit();
    const holders = this.#readHolders();
    const isGranted = [...holders.keys()].some((token) => !this.#holders.has(token));
    const used = [...holders.values()].reduce((sum, weight) => sum + weight, 0);
    const previous = this.#limit ?? Math.max(0, ...[...holders.keys()].map(limitNamedIn)); // who is the first sets it
    const capacity = Math.max(limit ?? allReaders, previous); // it may have changed in the same step
    if (isGranted && used > capacity) {
      this.#history.fail(
        "capacity",
        `the server let in ${used} where there is room for ${capacity}: ${this.#key}`,
      );
    }
    if (limit !== undefined) {
      this.#history.operator.limitApplied(this.#key, limit);
    }
    [this.#holders, this.#limit] = [holders, limit];
  }

  #readLimit(): number | undefined {
    const found = this.#decode("info").get("limit");
    return found === undefined ? undefined : Number(found);
  }

  /** How much of it each has, by its token. */
  #readHolders(): ReadonlyMap<string, number> {
    const stored = this.#server.dump(`lock:${this.#key}`);
    const info = this.#decode("info");
    const tokens = stored?.type === "zset" ? stored.value.map(([token]) => token) : [];
    return new Map(tokens.map((token) => [token, Number(info.get(`h${token}`)?.split(" ")[1])]));
  }

  #decode(field: "info"): ReadonlyMap<string, string> {
    const stored = this.#server.dump(`holdfast:${field}:{lock:${this.#key}}`);
    return new Map(stored?.type === "hash" ? stored.value : []);
  }
}

/** The limit that a request for permits named. */
function limitNamedIn(token: string): number {
  return Number(/:[as]\d+\/(\d+):/.exec(token)?.[1] ?? 0);
}
