import { clientOf, enqueue, firstOf, grantNext, numbers, precedes, raiseTtl, tell } from "./queue.ts";
import { digits, granted, put, writeInfo, type Answer, type Scope } from "./state.ts";

/** What `acquire`, `passOn` and `yield` are asked for. */
export interface Wanted {
  readonly token: string;
  readonly member: string;
  readonly ttl: string;
  readonly want: string;
  readonly words: string;
}

export function acquire(scope: Scope, args: readonly string[]): Answer {
  const [token, terms, ttl, want, wait, words] = args as [string, string, string, string, string, string];
  const { store, queue, queueBound, holder } = scope;
  const wanted = { token, member: `${token} ${terms}`, ttl, want, words };
  if (holder === null) {
    return takeTurn(scope, wanted, wait);
  } else if (holder === token) {
    return grantedAgain(scope, wanted);
  } else if (wait === "0") {
    return held(scope, holder, wait);
  }
  const isNew = standInLine(scope, token, terms);
  const answer = held(scope, holder, wait, wanted.member, !isNew);
  if (isNew && answer[2] >= queueBound) {
    store.zrem(queue, wanted.member);
    return [2];
  }
  return answer;
}

/** Gives up the grant of `old` and queues a new token in one step. */
export function passOn(scope: Scope, args: readonly string[]): Answer {
  const [old, token, terms, ttl, want, words] = args as [string, string, string, string, string, string];
  const wanted = { token, member: `${token} ${terms}`, ttl, want, words };
  const { holder } = scope;
  if (holder === null || holder === old) {
    return [holder === old ? 1 : 0, takeTurn(scope, wanted, "1")];
  } else if (holder === token) {
    return [0, grantedAgain(scope, wanted)];
  }
  standInLine(scope, token, terms);
  return [0, held(scope, holder, "1", wanted.member)];
}

/** K is absent, or its holder gives it up in this very operation. */
export function takeTurn(scope: Scope, { token, member, ttl, want, words }: Wanted, wait: string): Answer {
  if (wait !== "0") {
    enqueue(scope, token, member);
  }
  const nextHolder = grantNext(scope, member);
  if (nextHolder === false) {
    return [3];
  } else if (nextHolder === null || nextHolder === member) {
    return granted(scope, token, ttl, want, words);
  }
  return held(scope, nextHolder, wait, wait === "0" ? undefined : member);
}

/** The same question once more: the same grant, the same numbers. */
function grantedAgain(scope: Scope, { token, member, ttl, words }: Wanted): Answer {
  scope.store.zrem(scope.queue, member);
  const lasts = raiseTtl(scope, ttl);
  let { first, last } = numbers(scope);
  if (first === undefined) {
    [first, last] = put(scope, token, String(Math.max(scope.store.pttl(scope.K), Number(ttl))), "1");
  }
  if (scope.store.hget(scope.info, "token") !== token) {
    writeInfo(scope, token, lasts, words);
  }
  return [1, first, last, token];
}

type Held = readonly [
  status: 0,
  left: number,
  position: number,
  holder: string,
  runId: string,
  ...first: number[],
];

/** Who is far behind is told when the holder's TTL ends if it asks once more, which most do not have to. */
function held(scope: Scope, holder: string, wait: string, member?: string, isRepeat = false): Held {
  const { store, server, K, queue } = scope;
  const position = member === undefined ? -1 : (store.zrank(queue, member) ?? -1);
  const left = position < 3 || isRepeat ? store.pttl(K) : -3;
  return [0, left, position, holder, wait === "1" ? server.runId : "", ...firstOf(scope)];
}

/** K is another's: a place in the queue. Returns whether it is new. */
function standInLine(scope: Scope, token: string, terms: string): boolean {
  if (scope.isQuorum) {
    inquire(scope, token, terms);
  }
  return enqueue(scope, token, `${token} ${terms}`);
}

/** A rival that came later has the vote of this quorum's node: it is asked to give it back, unless it has won already. */
function inquire(scope: Scope, token: string, terms: string): void {
  const holder = scope.holder ?? "";
  const client = clientOf(holder);
  const { first } = numbers(scope);
  if (client !== undefined && first !== undefined && precedes(token, holder)) {
    const kind = terms.endsWith("s") ? "s" : "p";
    tell(scope.server, kind, client, `inquiry ${holder} ${digits(first)}`);
  }
}
