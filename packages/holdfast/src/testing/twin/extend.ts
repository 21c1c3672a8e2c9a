import { firstOf, numbers, raiseTtl, serveNext } from "./queue.ts";
import { writeInfo, type Answer, type Scope } from "./state.ts";

/** Raises the TTL of a grant that is ours; never shortens it and never creates it again. */
export function extend(scope: Scope, args: readonly string[]): Answer {
  const [token, ttl, words] = args as [string, string, string];
  const { holder } = scope;
  if (holder !== token) {
    const reason = whyNot(scope, token);
    serveNext(scope);
    return scope.isQuorum ? [reason] : reason;
  }
  raiseTtl(scope, ttl);
  writeInfo(scope, token, ttl, words);
  return scope.isQuorum ? [1, ...firstOf(scope)] : 1;
}

/** Asks whether a grant is still ours, and changes nothing. */
export function verify(scope: Scope, args: readonly string[]): Answer {
  const [token] = args as [string];
  if (scope.holder !== token) {
    return [whyNot(scope, token)];
  }
  const { store, K, info } = scope;
  const { first = 0 } = numbers(scope);
  const told = store.hget(info, "token") === token ? store.hget(info, "number") : undefined;
  return [1, store.pttl(K), first, told ?? ""];
}

/** A break leaves word beside the key for a holder that the message did not reach. */
function whyNot({ store, info, holder }: Scope, token: string): number {
  if (store.hget(info, "token") === token && store.hget(info, "broken") !== undefined) {
    return 3;
  }
  return holder === null ? 0 : 2;
}
