import type { Kind } from "./pub-sub.ts";
import { ServerError, unknownCommand } from "./server-error.ts";
import { digits, toNumber, type Scope, type Server } from "./state.ts";

const deadWaitersAtOnce = 16;
const memberForm = /^([\da-f]+:([\da-f]+):\d+) (\d+) (\d+) (\d+) ([a-z])$/i;

interface Waiter {
  readonly token: string;
  readonly client: string;
  readonly ttl: string;
  readonly want: string;
  readonly deadline: string;
  readonly kind: Kind;
}

/** Writes a grant of `want` numbers. The server's time is their floor. */
export function put(scope: Scope, token: string, ttl: string, want: string): [first: number, last: number] {
  const { store, now, retentionMs, K, fence } = scope;
  const newest = toNumber(store.hget(fence, "last")) ?? 0;
  const first = Math.max(newest + 1, now);
  const last = first + Number(want) - 1;
  store.hset(fence, "first", digits(first), "last", digits(last));
  store.pexpire(fence, Number(ttl) + retentionMs);
  store.set(K, token, Number(ttl));
  return [first, last];
}

export function publish(server: Server, kind: Kind, client: string, message: string): number {
  return publishTo(server, kind, `holdfast:grants:${client}`, message);
}

export function publishTo(server: Server, kind: Kind, channel: string, message: string): number {
  if (kind === "s" && Number.parseInt(server.version, 10) < 7) {
    throw new ServerError(unknownCommand);
  }
  return server.pubSub.publish(kind, channel, message);
}

/**
 * Hands K to the first waiter that is alive. Answers the new holder's token; `own`, not yet granted, if that member is first;
 * null if nobody waits (K is not touched); false at the bound of dead waiters, with K absent.
 */
export function grantNext(scope: Scope, own?: string): string | null | false {
  const { store, now, K, queue } = scope;
  for (let tries = 0; tries < deadWaitersAtOnce; tries += 1) {
    const [member] = store.zrange(queue, 0, 0);
    if (member === undefined) {
      return null;
    }
    if (member === own) {
      return own;
    }
    const waiter = parse(member);
    const deadline = Number(waiter?.deadline);
    if (!waiter || (deadline > 0 && deadline * 1000 < now)) {
      store.zrem(queue, member);
    } else if (offer(scope, member, waiter)) {
      return waiter.token;
    }
  }
  store.del(K);
  return false;
}

/** K is given up: to the next, or absent. Answers true where the caller has to repeat. */
export function letGo(scope: Scope): boolean {
  const { store, K, queue, info } = scope;
  const nextHolder = store.exists(queue) ? grantNext(scope) : null;
  if (nextHolder === null) {
    store.del(K, info);
  }
  return nextHolder === false;
}

/** K is absent, and this was found in passing: whoever waits is served. */
export function serveNext(scope: Scope): boolean {
  return scope.store.exists(scope.queue) && grantNext(scope) === false;
}

/** Offers K to one queue member. A publish that fails leaves the member in its place. */
function offer(scope: Scope, member: string, { token, client, ttl, want, kind }: Waiter): boolean {
  const { server, store, now, K, queue } = scope;
  const [first, last] = put(scope, token, ttl, want);
  const message = ["grant", token, digits(first), digits(last), digits(now), ttl, server.runId, K].join(" ");
  let heard: number;
  try {
    heard = publish(server, kind, client, message);
  } catch (error) {
    store.del(K);
    throw error;
  }
  store.zrem(queue, member);
  if (heard === 0) {
    store.del(K);
  }
  return heard > 0;
}

function parse(member: string): Waiter | undefined {
  const found = memberForm.exec(member);
  if (!found) {
    return undefined;
  }
  const [, token, client, ttl, want, deadline, kind] = found as unknown as string[];
  return { token, client, ttl, want, deadline, kind: kind === "s" ? "s" : "p" } as Waiter;
}
