import type { Kind } from "./pub-sub.ts";
import { ServerError, unknownCommand } from "./server-error.ts";
import { digits, put, toNumber, type Scope, type Server } from "./state.ts";

const deadWaitersAtOnce = 16;
export const queueTtlMs = 60_000;
const tokenForm = /^[\da-f]+:([\da-f]+):\d+$/i;
const memberForm = /^([\da-f]+:([\da-f]+):[^ ]+) (\d+) (\d+) (\d+) ([a-z][\da-z]*)$/i;
const shareForm = /^[\da-f]+:[\da-f]+:[a-z]/i;

export interface Waiter {
  readonly token: string;
  readonly client: string;
  readonly ttl: string;
  readonly want: string;
  readonly deadline: string;
  /** p plain, s sharded; s and a hash tag: in the slot of that tag. */
  readonly kind: string;
}

/**
 * Hands K to the first waiter that is alive; an error puts it back into its place. Answers the new holder's token; `own`, taken
 * from the queue and not yet granted, if that member is first; null if nobody waits (K is not touched); false at the bound of
 * dead waiters, with K absent.
 */
export function grantNext(scope: Scope, own?: string): string | null | false {
  const { store, now, K, queue } = scope;
  for (let tries = 0; tries < deadWaitersAtOnce; tries += 1) {
    const [member, score] = store.zpopmin(queue) ?? [];
    if (member === undefined || score === undefined) {
      return null;
    }
    if (member === own) {
      return own;
    }
    if (isShare(member)) {
      store.zadd(queue, score, member);
      store.del(K);
      throw new ServerError("KINDMISMATCH another kind");
    }
    const waiter = parse(member);
    const deadline = Number(waiter?.deadline);
    if (waiter && (deadline === 0 || deadline * 1000 >= now) && hasTaken(scope, waiter, member, score)) {
      return waiter.token;
    }
  }
  store.del(K);
  return false;
}

/** K is given up: to the next, or absent. Answers true where the caller has to repeat. */
export function letGo(scope: Scope): boolean {
  const nextHolder = grantNext(scope);
  if (nextHolder === null) {
    scope.store.del(scope.K, scope.info);
  }
  return nextHolder === false;
}

/** K was found absent in passing: whoever waits is served. Answers true where the caller has to repeat. */
export function serveNext(scope: Scope): boolean {
  const { store, queue, holder } = scope;
  return holder === null && store.exists(queue) && grantNext(scope) === false;
}

function hasTaken(scope: Scope, waiter: Waiter, member: string, score: number): boolean {
  const { store, K, queue } = scope;
  try {
    return offer(scope, waiter);
  } catch (error) {
    store.zadd(queue, score, member);
    store.pexpire(queue, queueTtlMs);
    store.del(K);
    throw error;
  }
}

/** Offers K to a waiter. Where nobody receives the message its process is gone. */
function offer(scope: Scope, { token, client, ttl, want, kind }: Waiter): boolean {
  const { server, store, now, K } = scope;
  const [first, last] = put(scope, token, ttl, want);
  const message = ["grant", token, digits(first), digits(last), digits(now), ttl, server.runId, K].join(" ");
  const heard = publish(server, kind, client, message);
  if (heard === 0) {
    store.del(K);
  }
  return heard > 0;
}

export function numbers({ store, fence }: Scope): { first: number | undefined; last: number | undefined } {
  return { first: toNumber(store.hget(fence, "first")), last: toNumber(store.hget(fence, "last")) };
}

/** What a quorum's node says beside its other answers: the first number of the present grant, if it is known. */
export function firstOf(scope: Scope): readonly number[] {
  const first = scope.isQuorum ? numbers(scope).first : undefined;
  return first === undefined ? [] : [first];
}

/** Raises a TTL, never shortens it. Returns what it is then. */
export function raiseTtl({ store, K, fence, info, retentionMs }: Scope, ttl: string): string {
  const left = store.pttl(K);
  if (left >= 0 && left < Number(ttl)) {
    store.pexpire(K, Number(ttl));
    store.pexpire(info, Number(ttl));
  }
  const lastsMs = Math.max(left, Number(ttl));
  store.pexpire(fence, lastsMs + retentionMs);
  return String(lastsMs);
}

/** A resend keeps its place. Returns whether the member is new. */
export function enqueue({ store, queue }: Scope, token: string, member: string): boolean {
  const isNew = store.zrank(queue, member) === undefined;
  store.zadd(queue, Number(/\d+$/.exec(token)?.[0]), member);
  store.pexpire(queue, queueTtlMs);
  return isNew;
}

/** Leaves the queue; without terms by the ticket. */
export function leave({ store, queue, isQuorum }: Scope, token: string, terms: string): void {
  const ticket = terms === "" && isQuorum ? /\d+$/.exec(token)?.[0] : undefined;
  if (ticket === undefined) {
    store.zrem(queue, `${token} ${terms}`);
    return;
  }
  for (const member of store.zrangebyscore(queue, Number(ticket), 16, Number(ticket))) {
    if (member.startsWith(`${token} `)) {
      store.zrem(queue, member);
    }
  }
}

/** Where it may not be told, nothing fails. */
export function tell(server: Server, kind: string, client: string, message: string): void {
  try {
    publish(server, kind, client, message);
  } catch (error) {
    if (!(error instanceof ServerError)) {
      throw error;
    }
  }
}

/** Of two waiters the one whose member stands first in the queue. */
export function precedes(token: string, other: string): boolean {
  const [ticket, others] = [token, other].map((text) => Number(/\d+$/.exec(text)?.[0])) as [number, number];
  return ticket === others ? token.slice(0, 32) < other.slice(0, 32) : ticket < others;
}

/** Undefined where the value of K is not of our form. */
export function clientOf(token: string | null): string | undefined {
  return tokenForm.exec(token ?? "")?.[1];
}

/** Of a token or a queue member: whether it shares K, which a mutex does not. */
export function isShare(text: string): boolean {
  return shareForm.test(text);
}

export function publish(server: Server, kind: string, client: string, message: string): number {
  const tag = kind.length > 1 ? `{${kind.slice(1)}}` : "";
  return publishTo(server, kind === "p" ? "p" : "s", `holdfast:grants:${tag}${client}`, message);
}

export function publishTo(server: Server, kind: Kind, channel: string, message: string): number {
  if (kind === "s" && Number.parseInt(server.version, 10) < 7) {
    throw new ServerError(unknownCommand);
  }
  return server.pubSub.publish(kind, channel, message);
}

export function parse(member: string): Waiter | undefined {
  const found = memberForm.exec(member);
  if (!found) {
    return undefined;
  }
  const [, token, client, ttl, want, deadline, kind] = found as unknown as string[];
  return { token, client, ttl, want, deadline, kind } as Waiter;
}
