import type { Answer } from "./acquire.ts";
import { serveNext } from "./grant.ts";
import { raiseTtl, writeInfo, type Scope } from "./state.ts";

/** Raises the TTL of a grant that is ours; never shortens it and never creates it again. */
export function extend(scope: Scope, args: readonly string[]): Answer {
  const [token, ttl, words] = args as [string, string, string];
  const { store, K, fence, retentionMs } = scope;
  const holder = store.get(K);
  if (holder !== token) {
    const reason = whyNot(scope, token, holder);
    if (holder === null) {
      serveNext(scope);
    }
    return reason;
  }
  raiseTtl(scope, ttl);
  store.pexpire(fence, Number(ttl) + retentionMs);
  writeInfo(scope, token, ttl, words);
  return 1;
}

/** Asks whether a grant is still ours, and changes nothing. */
export function verify(scope: Scope, args: readonly string[]): Answer {
  const [token] = args as [string];
  const { store, K } = scope;
  const holder = store.get(K);
  if (holder !== token) {
    return [whyNot(scope, token, holder)];
  }
  return [1, store.pttl(K)];
}

/** A break leaves word beside the key for a holder that the message did not reach. */
function whyNot({ store, info }: Scope, token: string, holder: string | null): number {
  if (store.hget(info, "token") === token && store.hget(info, "broken") !== undefined) {
    return 3;
  }
  return holder === null ? 0 : 2;
}
