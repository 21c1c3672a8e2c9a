import { isShare, numbers, tell } from "./queue.ts";
import { ServerError } from "./server-error.ts";
import { digits, toNumber, type Answer, type Scope } from "./state.ts";

const expectedMs = 15_000;
const toldAtOnce = 256;
const mostMembers = 100;
const memberForm = /^[\da-f]+:([\da-f]+):\d+ ([a-z][\da-z]*)$/i;

interface State {
  readonly total: number;
  readonly left: number;
  readonly born: string;
  readonly ends: number;
}

type Args = readonly string[];

/** A latch, as `lua/_latch.lua` has it. */
export class Latch {
  readonly #scope: Scope;
  readonly #nowMs: number;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#nowMs = Math.floor(scope.now / 1000);
  }

  perform(name: string, args: Args): Answer {
    const operation = operations[name];
    if (!operation) {
      throw new ServerError("KINDMISMATCH latch");
    }
    return operation(this, args, this.#scope);
  }

  countDown([token, count, ttl, known, latest]: Args): Answer {
    const { store, K } = this.#scope;
    if (this.#nowMs > Number(latest)) {
      return [3];
    }
    const state = this.#touch(Number(count), Number(ttl), known as string);
    if (!state) {
      return [0];
    }
    const attempt = `a${(token as string).slice(0, 32)}`;
    if (state.left === 0 || store.hget(K, attempt) !== undefined) {
      return this.#answer(state);
    }
    const counted = { ...state, left: state.left - 1 };
    if (counted.left > 0) {
      store.hset(K, attempt, "1", "left", String(counted.left));
    } else {
      store.del(K);
      this.#write(counted);
    }
    return this.#answer(counted);
  }

  awaitLatch([token, count, ttl, known, latest, kind]: Args): Answer {
    const { store, queue, queueBound } = this.#scope;
    if (this.#nowMs > Number(latest)) {
      return [3];
    }
    const state = this.#touch(Number(count), Number(ttl), known as string);
    if (!state) {
      return [0];
    } else if (state.left > 0 && kind !== "n") {
      const member = `${token} ${kind}`;
      this.#forgetTheDead();
      if (store.zcard(queue) >= queueBound && store.zscore(queue, member) === undefined) {
        return [2];
      }
      store.zput(queue, this.#nowMs + expectedMs, member);
      store.pexpireat(queue, state.ends);
    }
    return this.#answer(state);
  }

  inspect(): Answer {
    const { store, queue } = this.#scope;
    const { total, left, ends } = this.#look() as State;
    const { first, last } = numbers(this.#scope);
    this.#forgetTheDead();
    return [
      "",
      Math.max(0, ends - this.#nowMs),
      first === undefined ? "" : digits(first),
      last === undefined ? "" : digits(last),
      [],
      store.zcard(queue),
      store.zrange(queue, 0, mostMembers - 1),
      "latch",
      total,
      left,
    ];
  }

  #look(): State | undefined {
    const { store, K } = this.#scope;
    const [total, left, born, ends] = ["latch", "left", "born", "ends"].map((field) => store.hget(K, field));
    const found = { total: toNumber(total), left: toNumber(left), born, ends: toNumber(ends) };
    if (Object.values(found).every((value) => value !== undefined)) {
      return found as State;
    } else if (store.exists(K)) {
      throw new ServerError("KINDMISMATCH a hash of others");
    }
    return undefined;
  }

  #touch(count: number, ttlMs: number, known: string): State | undefined {
    const { store, queue, now } = this.#scope;
    const found = this.#look();
    if (known !== "" && known !== found?.born) {
      return undefined;
    } else if (found && found.total !== count) {
      throw new ServerError(`COUNTMISMATCH ${found.total}`);
    } else if (found) {
      return found;
    }
    const [first] = store.zrange(queue, 0, 0);
    if (first !== undefined && memberForm.test(first)) {
      store.del(queue);
    } else if (first !== undefined) {
      throw new ServerError(`KINDMISMATCH ${isShare(first) ? "one that several may hold" : "mutex"}`);
    }
    const made = { total: count, left: count, born: digits(now), ends: this.#nowMs + ttlMs };
    this.#write(made);
    return made;
  }

  #write({ total, left, born, ends }: State): void {
    const { store, K } = this.#scope;
    store.hset(K, "latch", String(total), "left", String(left), "born", born, "ends", String(ends));
    store.pexpireat(K, ends);
  }

  #answer(state: State): Answer {
    const more = state.left === 0 && this.#tell(state.born) ? 1 : 0;
    return [1, state.left, state.born, Math.max(0, state.ends - this.#nowMs), more];
  }

  /** Answers whether more are left to be told. */
  #tell(born: string): boolean {
    const { server, store, queue, K } = this.#scope;
    const told = new Set<string>();
    for (let count = 0; count < toldAtOnce; count += 1) {
      const [member] = store.zpopmin(queue) ?? [];
      if (member === undefined) {
        return false;
      }
      const [, client, kind] = memberForm.exec(member) ?? [];
      if (client !== undefined && !told.has(client + kind)) {
        told.add(client + kind);
        tell(server, kind as string, client, `open ${born} ${K}`);
      }
    }
    return store.exists(queue);
  }

  #forgetTheDead(): void {
    const { store, queue } = this.#scope;
    for (const member of store.zrangebyscore(queue, this.#nowMs, Infinity)) {
      store.zrem(queue, member);
    }
  }
}

/** Whether the key is a latch. */
export function isLatch({ store, K }: Pick<Scope, "store" | "K">): boolean {
  return store.type(K) === "hash" && store.hget(K, "latch") !== undefined;
}

const operations: Readonly<Record<string, (latch: Latch, args: Args, scope: Scope) => Answer>> = {
  countDown: (latch, args) => latch.countDown(args),
  awaitLatch: (latch, args) => latch.awaitLatch(args),
  leaveLatch: (_latch, [token, kind], { store, queue }) => {
    store.zrem(queue, `${token} ${kind}`);
    return [1];
  },
  inspect: (latch) => latch.inspect(),
  release: () => [0, 0, ""],
  verify: () => [0],
  downgrade: () => [0],
  extend: (_latch, _args, { isQuorum }) => (isQuorum ? [0] : 0),
  breakGrant: () => [0, 0],
};
