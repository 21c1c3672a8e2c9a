import { grantNext, put } from "./grant.ts";
import { numbers, raiseTtl, writeInfo, type Scope } from "./state.ts";

/** An answer of a script, as a client library gives it. */
export type Answer = readonly unknown[] | number;

/** What `acquire` and `passOn` are asked for. */
interface Wanted {
  readonly token: string;
  readonly member: string;
  readonly ttl: string;
  readonly want: string;
  readonly words: string;
}

const attemptLength = 33;
const queueTtlMs = 60_000;

export function acquire(scope: Scope, args: readonly string[]): Answer {
  const [token, terms, ttl, want, wait, words] = args as [string, string, string, string, string, string];
  const { store, K, queue, queueBound } = scope;
  const wanted = { token, member: `${token} ${terms}`, ttl, want, words };
  const holder = store.get(K);
  if (holder === null) {
    return takeTurn(scope, wanted, wait === "1");
  } else if (isOurs(holder, token)) {
    return grantedAgain(scope, holder, wanted);
  } else if (wait !== "1") {
    return held(scope, holder);
  }
  enqueue(scope, wanted);
  const answer = held(scope, holder, wanted.member);
  if (answer[2] >= queueBound) {
    store.zrem(queue, wanted.member);
    return [2];
  }
  return answer;
}

/** Gives up the grant of `old` and queues a new token in one step. */
export function passOn(scope: Scope, args: readonly string[]): Answer {
  const [old, token, terms, ttl, want, words] = args as [string, string, string, string, string, string];
  const wanted = { token, member: `${token} ${terms}`, ttl, want, words };
  const holder = scope.store.get(scope.K);
  if (holder === null || holder === old) {
    return [holder === old ? 1 : 0, takeTurn(scope, wanted, true)];
  } else if (isOurs(holder, token)) {
    return [0, grantedAgain(scope, holder, wanted)];
  }
  enqueue(scope, wanted);
  return [0, held(scope, holder, wanted.member)];
}

/** K is absent, or its holder gives it up in this very operation. */
function takeTurn(scope: Scope, wanted: Wanted, wait: boolean): Answer {
  const { store, queue } = scope;
  if (!store.exists(queue)) {
    return granted(scope, wanted);
  }
  if (wait) {
    enqueue(scope, wanted);
  }
  const nextHolder = grantNext(scope, wanted.member);
  if (nextHolder === false) {
    return [3];
  } else if (nextHolder === null) {
    return granted(scope, wanted);
  } else if (nextHolder === wanted.member) {
    const answer = granted(scope, wanted);
    store.zrem(queue, wanted.member);
    return answer;
  }
  return held(scope, nextHolder, wait ? wanted.member : undefined);
}

function granted(scope: Scope, { token, ttl, want, words }: Wanted): Answer {
  const [first, last] = put(scope, token, ttl, want);
  writeInfo(scope, token, ttl, words);
  return [1, first, last, token];
}

/** A repeat of an attempt that was granted: the same grant, the same numbers. */
function grantedAgain(scope: Scope, holder: string, { member, ttl }: Wanted): Answer {
  scope.store.zrem(scope.queue, member);
  raiseTtl(scope, ttl);
  let { first, last } = numbers(scope);
  if (first === undefined) {
    [first, last] = put(scope, holder, ttl, "1");
  }
  return [1, first, last, holder];
}

type Held = readonly [status: 0, left: number, position: number, holder: string, runId: string];

/** Only the first three places need to know when the holder's TTL ends: they poll then. */
function held({ store, server, K, queue }: Scope, holder: string, member?: string): Held {
  const position = member === undefined ? -1 : (store.zrank(queue, member) ?? -1);
  return [0, position < 3 ? store.pttl(K) : -3, position, holder, server.runId];
}

function enqueue({ store, queue }: Scope, { token, member }: Wanted): void {
  store.zadd(queue, Number(/\d+$/.exec(token)?.[0]), member);
  store.pexpire(queue, queueTtlMs);
}

function isOurs(holder: string, token: string): boolean {
  return holder.slice(0, attemptLength) === token.slice(0, attemptLength);
}
