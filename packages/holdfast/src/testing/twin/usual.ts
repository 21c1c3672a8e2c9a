import { put, writeInfo, type Answer, type Scope } from "./state.ts";

/**
 * Taking a lock that nobody holds, and giving back one that is ours, where nobody waits: answered by less than in the other cases,
 * which are undefined here.
 */
export function usual(scope: Scope, name: string, args: readonly string[]): Answer | undefined {
  const { store, K, queue, info, holder } = scope;
  const [token, , ttl, want, , words] = args as [string, string, string, string, string, string];
  if (name === "acquire" && holder === null && !store.exists(queue)) {
    const [first] = put(scope, token, ttl, want);
    writeInfo(scope, token, ttl, words);
    return first;
  } else if (name === "release" && holder === token && store.zcard(queue) === 0) {
    store.del(K, info);
    return 1;
  }
  return undefined;
}
