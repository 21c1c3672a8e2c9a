import { numbers, raiseTtl, serveNext } from "./queue.ts";
import { writeInfo, type Answer, type Scope } from "./state.ts";

/** Raises the TTL of a grant that is ours; never shortens it and never creates it again. */
export function extend(scope: Scope, args: readonly string[]): Answer {
  const [token, ttl, words, number] = args as [string, string, string, string];
  const { holder } = scope;
  if (holder !== token) {
    const reason = whyNot(scope, token);
    serveNext(scope);
    return scope.isQuorum ? [reason] : reason;
  } else if (number !== "" && (numbers(scope).first ?? 0) > Number(number)) {
    return 0;
  }
  writeInfo(scope, token, raiseTtl(scope, ttl), words);
  return scope.isQuorum ? [1, numbers(scope).first ?? 0] : 1;
}

/** Asks whether a grant is still ours, and changes nothing. */
export function verify(scope: Scope, args: readonly string[]): Answer {
  const [token] = args as [string];
  if (scope.holder !== token) {
    return [whyNot(scope, token)];
  }
  return [1, scope.store.pttl(scope.K), numbers(scope).first ?? 0];
}

/** A break leaves word beside the key for a holder that the message did not reach. */
function whyNot({ store, info, holder }: Scope, token: string): number {
  if (store.hget(info, "token") === token && store.hget(info, "broken") !== undefined) {
    return 3;
  }
  return holder === null ? 0 : 2;
}
