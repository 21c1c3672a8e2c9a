import { granted, type Answer, type Scope } from "./state.ts";

/** Taking a lock that nobody holds, and giving back one that is ours, where nobody waits. Undefined where it is another case. */
export function usual(scope: Scope, name: string, args: readonly string[]): Answer | undefined {
  const { store, K, queue, info, holder } = scope;
  const [token, , ttl, want, , words] = args as [string, string, string, string, string, string];
  if (name === "acquire" && holder === null && !store.exists(queue)) {
    return granted(scope, token, ttl, want, words);
  } else if (name === "release" && holder === token && store.zcard(queue) === 0) {
    store.del(K, info);
    return [1, 0, ""];
  }
  return undefined;
}
