import { clientOf, demandOf, everybody, Holders, type Demand, type Holding } from "./holders.ts";
import { enqueue, isShare, leave, numbers, parse, precedes, publish, queueTtlMs, tell } from "./queue.ts";
import { encode } from "./release.ts";
import { ServerError } from "./server-error.ts";
import { digits, type Answer, type Scope } from "./state.ts";

const servedAtOnce = 64;
const mostMembers = 100;

type Args = readonly string[];
type Chance = "now" | "over" | "too many" | "none";
type Operation = (share: Share, args: Args) => Answer;

/** A lock that several may hold, as `lua/_share.lua` has it. */
export class Share {
  readonly #scope: Scope;
  readonly #holders: Holders;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#holders = new Holders(scope);
  }

  perform(name: string, args: Args): Answer {
    const operation = operations[name as keyof typeof operations] as Operation | undefined;
    if (!operation) {
      throw new ServerError(`KINDMISMATCH ${this.#holders.kind ?? "mutex"}`);
    }
    return operation(this, args);
  }

  acquire([token, terms, ttl, , wait, words]: Args): Answer {
    const { store, queue, isQuorum, queueBound } = this.#scope;
    const [own, lastsMs, told] = [token as string, Number(ttl), words as string];
    const member = `${own} ${terms}`;
    const known = this.#holders.of(own);
    const waited = store.zrank(queue, member) !== undefined;
    const limit = this.#holders.limit ?? everybody;
    if (!known && (!waited || (demandOf(own) as Demand).weight > limit)) {
      this.#holders.check(own);
    }
    if (known) {
      store.zrem(queue, member);
      if (isQuorum) {
        this.#inquireAgain(known, terms as string);
      }
      return this.#takePlace(own, member, lastsMs, wait as string, told);
    } else if (wait === "0") {
      return this.#onlyTry(own, lastsMs, told);
    }
    enqueue(this.#scope, own, member);
    if (isQuorum) {
      this.#inquireAll(own, terms as string);
    }
    const answer = this.#takePlace(own, member, lastsMs, wait as string, told) as readonly unknown[];
    if (answer[0] === 0 && !waited && Number(answer[2]) >= queueBound) {
      store.zrem(queue, member);
      return [2];
    }
    return answer;
  }

  release([token, terms]: Args): Answer {
    const { store, K } = this.#scope;
    const own = this.#holders.of(token as string);
    if (own) {
      this.#holders.remove(token as string);
    }
    leave(this.#scope, token as string, terms as string);
    const { isMore } = this.#serve();
    return [own ? 1 : 0, isMore ? 1 : 0, store.zrange(K, 0, 0)[0] ?? ""];
  }

  extend([token, ttl, words, number]: Args): Answer {
    const { isQuorum } = this.#scope;
    const known = this.#holders.of(token as string);
    if (!known) {
      const reason = this.#whyNot(token as string);
      this.#serve();
      return isQuorum ? [reason] : reason;
    } else if (number !== "" && known.number > Number(number)) {
      return 0;
    }
    this.#admittedAgain(known, "", Number(ttl), words as string);
    return isQuorum ? [1, known.number] : 1;
  }

  verify([token]: Args): Answer {
    const { store, K } = this.#scope;
    const known = this.#holders.of(token as string);
    if (!known) {
      return [this.#whyNot(token as string)];
    }
    const left = (store.zscore(K, known.token) ?? 0) - this.#holders.nowMs;
    return [1, left, known.number];
  }

  breakGrant([number, kind, reason]: Args): Answer {
    const { server, store, K, fence } = this.#scope;
    const found = this.#holders
      .all()
      .find((holding) => digits(holding.number) === number || holding.token === number);
    if (!found) {
      return [0, 0];
    }
    tell(
      server,
      kind as string,
      clientOf(found.token),
      `broken ${encode([found.token, K, reason as string])}`,
    );
    this.#holders.remove(found.token);
    store.hset(fence, "broken", found.token);
    const { isMore } = this.#serve();
    return [1, isMore ? 1 : 0];
  }

  inspect(): Answer {
    const { store, K, queue, info } = this.#scope;
    const { first, last } = numbers(this.#scope);
    const holders = this.#holders
      .all()
      .map(({ token, number, weight }) => [
        token,
        (store.zscore(K, token) ?? 0) - this.#holders.nowMs,
        digits(number),
        weight,
        store.hget(info, `w${token}`) ?? "",
      ]);
    return [
      "",
      -2,
      first === undefined ? "" : digits(first),
      last === undefined ? "" : digits(last),
      [],
      store.zcard(queue),
      store.zrange(queue, 0, mostMembers - 1),
      this.#holders.kind,
      this.#holders.limit,
      holders,
    ];
  }

  yield([token, terms, number, ttl, want, words]: Args): Answer {
    const own = token as string;
    const member = `${own} ${terms}`;
    const known = this.#holders.of(own);
    if (known?.number !== Number(number)) {
      return this.acquire([own, terms as string, ttl as string, want as string, "2", words as string]);
    }
    this.#holders.remove(own);
    enqueue(this.#scope, own, member);
    return this.#takePlace(own, member, Number(ttl), "2", words as string);
  }

  agree([token, wanted]: Args): Answer {
    const { store, fence } = this.#scope;
    const known = this.#holders.of(token as string);
    if (!known) {
      return [0];
    }
    const number = Number(wanted);
    if (known.number >= number) {
      return [1, known.number, known.number];
    }
    this.#holders.write(known.token, number, known.weight);
    if ((numbers(this.#scope).last ?? 0) < number) {
      store.hset(fence, "first", digits(number), "last", digits(number));
    }
    return [1, number, number];
  }

  downgrade([token]: Args): Answer {
    const known = this.#holders.of(token as string);
    if (!known) {
      return [this.#whyNot(token as string)];
    }
    this.#holders.used += 1 - known.weight;
    this.#holders.write(known.token, known.number, 1);
    return [1, this.#serve().isMore ? 1 : 0];
  }

  setLimit([limit]: Args): Answer {
    const { store, K, fence, retentionMs } = this.#scope;
    const present = this.#holders.present();
    if (present !== undefined && present !== "semaphore") {
      throw new ServerError(`KINDMISMATCH ${present}`);
    }
    this.#holders.kind = "semaphore";
    this.#holders.limit = Number(limit);
    store.hset(fence, "kind", this.#holders.kind, "limit", limit as string);
    store.pexpire(fence, Math.max(store.pttl(K), 0) + retentionMs);
    return [1, this.#serve().isMore ? 1 : 0];
  }

  /** Grants to who stands first, as long as there is room for him. */
  #serve(own?: string, ownTtlMs = 0): { readonly number: number | undefined; readonly isMore: boolean } {
    const { store, queue } = this.#scope;
    let number: number | undefined;
    for (let tries = 0; tries < servedAtOnce; tries += 1) {
      const [member] = store.zrange(queue, 0, 0);
      const chance = member === undefined ? "none" : this.#chanceOf(member, member === own);
      if (member === undefined || chance === "none") {
        return { number, isMore: false };
      }
      const score = store.zscore(queue, member) as number;
      store.zrem(queue, member);
      if (this.#mustAskAgain(member, chance)) {
        this.#sendAgain(member, own);
      } else if (chance === "now" && member === own) {
        number = this.#holders.admit(member.split(" ")[0] as string, ownTtlMs);
      } else if (chance === "now") {
        this.#offer(member, score);
      }
    }
    return { number, isMore: true };
  }

  /** Whether a waiter can be granted now; `over`: its time is; `too many`: it wants more than there are. */
  #chanceOf(member: string, isOwn: boolean): Chance {
    const demand = demandOf(member);
    if (demand === undefined || demand.kind !== this.#holders.kind) {
      return "none";
    }
    const limit = this.#holders.limit as number;
    const deadline = Number(parse(member)?.deadline);
    const isOver = deadline !== 0 && deadline < this.#holders.nowMs && !isOwn;
    if (isOver || demand.weight > limit) {
      return isOver ? "over" : "too many";
    }
    return this.#holders.used + demand.weight <= limit ? "now" : "none";
  }

  /** An earlier question has it, or it wants more than there are. */
  #mustAskAgain(member: string, chance: Chance): boolean {
    return chance === "too many" || this.#holders.of(member.split(" ")[0] as string) !== undefined;
  }

  #sendAgain(member: string, own: string | undefined): void {
    const waiter = parse(member);
    const isOver = Number(waiter?.deadline) !== 0 && Number(waiter?.deadline) < this.#holders.nowMs;
    if (waiter && member !== own && !isOver) {
      tell(this.#scope.server, waiter.kind, waiter.client, `again ${waiter.token}`);
    }
  }

  #offer(member: string, score: number): void {
    const { server, store, queue, now, K } = this.#scope;
    const { token, client, ttl, kind } = parse(member) as NonNullable<ReturnType<typeof parse>>;
    const text = digits(this.#holders.admit(token, Number(ttl)));
    const message = ["grant", token, text, text, digits(now), ttl, server.runId, K].join(" ");
    try {
      if (publish(server, kind, client, message) === 0) {
        this.#holders.remove(token);
      }
    } catch (error) {
      this.#holders.remove(token);
      store.zadd(queue, score, member);
      store.pexpire(queue, queueTtlMs);
      throw error;
    }
  }

  #inquireAll(token: string, terms: string): void {
    const { weight } = demandOf(token) as Demand;
    for (const other of this.#holders.all().slice(0, servedAtOnce)) {
      if (weight + other.weight > (this.#holders.limit as number) && precedes(token, other.token)) {
        this.#inquire(other, terms);
      }
    }
  }

  #inquireAgain(known: Holding, terms: string): void {
    const { store, queue } = this.#scope;
    const first = parse(store.zrange(queue, 0, 0)[0] ?? "")?.token ?? "";
    const wanted = demandOf(first)?.weight;
    if (
      wanted !== undefined &&
      known.weight + wanted > (this.#holders.limit as number) &&
      precedes(first, known.token)
    ) {
      this.#inquire(known, terms);
    }
  }

  #inquire({ token, number }: Holding, terms: string): void {
    const kind = terms.endsWith("s") ? "s" : "p";
    tell(this.#scope.server, kind, clientOf(token), `inquiry ${token} ${digits(number)}`);
  }

  #heldByOthers(wait: string, member?: string): Answer {
    const { server, store, K, queue, isQuorum } = this.#scope;
    const position = member === undefined ? -1 : (store.zrank(queue, member) ?? -1);
    const [first] = store.zrange(K, 0, 0);
    const left = first === undefined ? -1 : (store.zscore(K, first) as number) - this.#holders.nowMs;
    const answer = [0, left, position, first ?? "", wait === "1" ? server.runId : ""];
    return isQuorum && first !== undefined ? [...answer, this.#holders.of(first)?.number] : answer;
  }

  #admittedAgain({ token, number }: Holding, member: string, ttlMs: number, words: string): Answer {
    const { store, K, queue } = this.#scope;
    if ((store.zscore(K, token) as number) < this.#holders.nowMs + ttlMs) {
      store.zput(K, this.#holders.nowMs + ttlMs, token);
    }
    this.#holders.outlive(ttlMs);
    store.zrem(queue, member);
    this.#holders.note(token, words);
    return [1, number, number, token];
  }

  #takePlace(token: string, member: string, ttlMs: number, wait: string, words: string): Answer {
    const { number, isMore } = this.#serve(member, ttlMs);
    if (isMore) {
      return [3]; // who was granted as well: it is granted again
    } else if (number !== undefined) {
      this.#holders.note(token, words);
      return [1, number, number, token];
    }
    const known = this.#holders.of(token);
    if (known) {
      return this.#admittedAgain(known, member, ttlMs, words);
    }
    return this.#holders.hasExpiredOnes ? [3] : this.#heldByOthers(wait, member);
  }

  #onlyTry(token: string, ttlMs: number, words: string): Answer {
    const { store, queue } = this.#scope;
    const { isMore } = this.#serve();
    const known = this.#holders.of(token);
    const { weight } = demandOf(token) as Demand;
    if (isMore) {
      return [3];
    } else if (known) {
      return this.#admittedAgain(known, "", ttlMs, words);
    } else if (store.exists(queue) || this.#holders.used + weight > (this.#holders.limit as number)) {
      return this.#holders.hasExpiredOnes ? [3] : this.#heldByOthers("0");
    }
    const number = this.#holders.admit(token, ttlMs);
    this.#holders.note(token, words);
    return [1, number, number, token];
  }

  #whyNot(token: string): number {
    return this.#scope.store.hget(this.#scope.fence, "broken") === token ? 3 : 0;
  }
}

const operations = {
  acquire: (share: Share, args: Args): Answer => share.acquire(args),
  release: (share: Share, args: Args): Answer => share.release(args),
  extend: (share: Share, args: Args): Answer => share.extend(args),
  verify: (share: Share, args: Args): Answer => share.verify(args),
  breakGrant: (share: Share, args: Args): Answer => share.breakGrant(args),
  inspect: (share: Share): Answer => share.inspect(),
  yield: (share: Share, args: Args): Answer => share.yield(args),
  agree: (share: Share, args: Args): Answer => share.agree(args),
  downgrade: (share: Share, args: Args): Answer => share.downgrade(args),
  setLimit: (share: Share, args: Args): Answer => share.setLimit(args),
};

/** Whether the lock is one that several may hold: a token says so of itself, else what is there now. */
export function isShared({ store, K, queue, fence }: Scope, name: string, [token = ""]: Args): boolean {
  const mark = token.charCodeAt(66);
  if (!Number.isNaN(mark)) {
    return mark > 57;
  }
  const type = store.type(K);
  if (type !== "none") {
    return type === "zset";
  }
  const [first] = store.zrange(queue, 0, 0);
  if (first !== undefined) {
    return isShare(first);
  }
  return name === "setLimit" || store.hget(fence, "kind") !== undefined;
}
