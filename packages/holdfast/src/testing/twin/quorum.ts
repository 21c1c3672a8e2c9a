import { acquire, takeTurn } from "./acquire.ts";
import { numbers } from "./queue.ts";
import { digits, toNumber, type Answer, type Scope } from "./state.ts";

/** Gives the vote with this number to whoever stands first, and stands in line again; the vote with another number stays. */
export function yieldVote(scope: Scope, args: readonly string[]): Answer {
  const [token, terms, number, ttl, want, words] = args as [string, string, string, string, string, string];
  if (scope.holder === token && numbers(scope).first === toNumber(number)) {
    return takeTurn(scope, { token, member: `${token} ${terms}`, ttl, want, words }, "2");
  }
  return acquire(scope, [token, terms, ttl, want, "2", words]);
}

/** The nodes gave different numbers: raises that of our grant, as a block of `want`; never lowers it. */
export function agree(scope: Scope, args: readonly string[]): Answer {
  const [token, number, want] = args as [string, string, string];
  const { store, K, fence, holder, retentionMs } = scope;
  if (holder !== token) {
    return [0];
  }
  const { first, last } = numbers(scope);
  if (first !== undefined && first >= Number(number)) {
    return last === undefined ? [1, first] : [1, first, last];
  }
  const block = [Number(number), Number(number) + Number(want) - 1] as const;
  store.hset(fence, "first", digits(block[0]), "last", digits(block[1]));
  store.pexpire(fence, store.pttl(K) + retentionMs);
  return [1, ...block];
}
