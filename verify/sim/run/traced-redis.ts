import { FakeRedis, type FakeRedisOptions } from "@holdfast/test-kit/fake-redis";

/** The state of a mutex on one node of a quorum. */
export interface NodeState {
  /** The token that has the vote; undefined: no token has the vote. */
  readonly holder: string | undefined;
  /** The number of the newest grant. */
  readonly fencingNumber: number;
  /** The waiting tokens, the first position first. */
  readonly queue: readonly string[];
}

/** One operation that the node executed. */
export interface TracedOperation {
  readonly name: string;
  readonly token: string;
  /** The number in the arguments of `yield` and `raiseFence`; 0 for other operations. */
  readonly fencingNumber: number;
  /** The operation is an acquire that does not queue. */
  readonly isTry: boolean;
  readonly reply: unknown;
}

/** The effect of one script call on one key of a node. */
interface TracedCall {
  readonly kind: "call";
  readonly node: number;
  readonly serverMs: number;
  readonly operations: readonly TracedOperation[];
  readonly before: NodeState;
  readonly after: NodeState;
}

export type TraceEvent =
  | TracedCall
  /** A node lost all its data. */
  | { readonly kind: "wiped"; readonly node: number; readonly serverMs: number }
  /** A caller got a lease. */
  | { readonly kind: "held"; readonly fencingNumber: number };

/** @param key undefined: the event concerns all keys */
export type Record = (key: string | undefined, event: TraceEvent) => void;

/** How many arguments each operation of `execute-quorum.lua` has after the proposed fencing number. */
const argumentCounts: Readonly<globalThis.Record<string, number>> = {
  acquire: 7,
  yield: 7,
  refill: 6,
  release: 2,
  raiseFence: 3,
  extend: 4,
  verify: 1,
  breakGrant: 3,
  recordedBreak: 4,
  inspect: 0,
};

/** A server that records the effects of its scripts. */
export class TracedRedis extends FakeRedis {
  readonly #record: Record;
  readonly #node: number;
  readonly #clock: FakeRedisOptions["clock"];

  constructor(options: FakeRedisOptions, node: number, record: Record) {
    super(options);
    this.#node = node;
    this.#record = record;
    this.#clock = options.clock;
  }

  override execute(...call: Parameters<FakeRedis["execute"]>): unknown {
    const [script, keys, args] = call;
    if (script.name !== "execute-quorum") {
      return super.execute(...call);
    }
    const operations = operationsOf(args.at(-1) ?? "[]");
    const locks = [...new Set(operations.map((_, index) => keys[index * 4] as string))]; // without the audit, the last key
    const statesBefore = locks.map((lock) => this.#stateOf(lock));
    const replies = super.execute(...call) as unknown[];
    locks.forEach((lock, index) => {
      this.#record(lock, {
        kind: "call",
        node: this.#node,
        serverMs: this.#clock.wall(),
        operations: operations
          .map((operation, position) => ({ ...operation, reply: replies[position + 1] }))
          .filter((_, position) => keys[position * 4] === lock),
        before: statesBefore[index] as NodeState,
        after: this.#stateOf(lock),
      });
    });
    return replies;
  }

  override restart(how: Parameters<FakeRedis["restart"]>[0]): void {
    super.restart(how);
    if (!how.keepData) {
      this.#record(undefined, { kind: "wiped", node: this.#node, serverMs: this.#clock.wall() });
    }
  }

  #stateOf(lock: string): NodeState {
    const holder = this.dump(lock);
    const queue = this.dump(`holdfast:queue:{${lock}}`);
    const fence = this.dump(`holdfast:fence:{${lock}}`);
    const numbers = new Map(fence?.type === "hash" ? fence.value : []);
    return {
      holder: holder?.type === "string" ? holder.value : undefined,
      fencingNumber: Number(numbers.get("first") ?? 0),
      queue: queue?.type === "zset" ? queue.value.map(([member]) => member.split(" ")[0] as string) : [],
    };
  }
}

function operationsOf(text: string): Omit<TracedOperation, "reply">[] {
  const fields = JSON.parse(text) as string[];
  const operations: Omit<TracedOperation, "reply">[] = [];
  for (let at = 0; at < fields.length;) {
    const name = fields[at] as string;
    const count = argumentCounts[name];
    if (count === undefined) {
      throw new RangeError(`Expected an operation on a mutex, got "${name}"`);
    }
    const [token = "", second = "", third = "", , wait] = fields.slice(at + 2, at + 2 + count);
    const fencingNumber = Number(name === "raiseFence" ? second : name === "yield" ? third : 0);
    const traced = name === "recordedBreak" ? "breakGrant" : name;
    operations.push({ name: traced, token, fencingNumber, isTry: name === "acquire" && wait === "0" });
    at += 2 + count;
  }
  return operations;
}
