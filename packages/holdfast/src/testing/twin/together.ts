import { granted, requirePrimary, toNumber, type Answer, type Scope, type Server } from "./state.ts";

/** Takes several free locks in one step, or none of them. */
export function together(server: Server, keys: readonly string[], args: readonly string[]): Answer {
  const { store } = server;
  const now = server.micros();
  const scopes = Array.from({ length: keys.length / 4 }, (_, index): Scope => {
    const [K, queue, fence, info] = keys.slice(index * 4, index * 4 + 4) as [string, string, string, string];
    const settings = { server, store, now, isQuorum: false, retentionMs: Number(args[0]), queueBound: 0 };
    return { ...settings, floor: now, K, queue, fence, info, holder: store.get(K) };
  });
  const tokenOf = (index: number): string => args[3 + 4 * index] as string;
  const taken = scopes.findIndex(
    (scope, index) => !isOurs(scope, tokenOf(index)) && (scope.holder !== null || store.exists(scope.queue)),
  );
  if (taken >= 0) {
    requirePrimary(server);
    return [now, taken + 1, scopes[taken]?.holder ?? ""];
  }
  const answers = scopes.map((scope, index) => {
    const [token, ttl, want, words] = args.slice(3 + 4 * index) as [string, string, string, string];
    return isOurs(scope, token) ? known(scope, Number(ttl)) : granted(scope, token, ttl, want, words);
  });
  return [now, 0, ...answers];
}

function isOurs({ holder }: Scope, token: string): boolean {
  return holder !== null && holder.slice(0, 33) === token.slice(0, 33);
}

function known({ store, K, fence, holder, retentionMs }: Scope, ttlMs: number): Answer {
  const leftMs = store.pttl(K);
  if (leftMs < ttlMs) {
    store.pexpire(K, ttlMs);
  }
  store.pexpire(fence, Math.max(leftMs, ttlMs) + retentionMs);
  const [first, last] = ["first", "last"].map((name) => toNumber(store.hget(fence, name)) ?? 0);
  return [1, first, last, holder];
}
