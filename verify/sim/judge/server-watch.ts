import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { allReaders } from "../plan/lock-mode.ts";
import type { History } from "./history.ts";

/** Checks after each event the data that one server stores for a key that several holders may share. */
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

  /** An admitted holder finds enough capacity beside all other holders. Expired holders do not count. */
  check(): void {
    const limit = this.#readLimit();
    const holders = this.#readHolders();
    const isGranted = [...holders.keys()].some((token) => !this.#holders.has(token));
    const used = [...holders.values()].reduce((sum, weight) => sum + weight, 0);
    const previous = this.#limit ?? Math.max(0, ...[...holders.keys()].map(limitNamedIn)); // the first holder sets the limit
    const capacity = Math.max(limit ?? allReaders, previous); // the limit may have changed in the same step
    if (isGranted && used > capacity) {
      this.#history.fail(
        "capacity",
        `the server admitted a weight of ${used} to ${this.#key}, whose capacity is ${capacity}`,
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

  /** The weight of each holder, by its token. */
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
