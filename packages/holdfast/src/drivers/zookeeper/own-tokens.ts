import type { Clock, Timer } from "../../runtime/clock.ts";

/** A grant of this driver. */
export interface OwnGrant {
  readonly path: string;
  readonly fencingToken: bigint;
  /** The last known version of the node. */
  readonly version: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly reason: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** The nodes that one token has, or may have. */
export interface OwnToken {
  readonly token: string;
  readonly key: string;
  /** undefined: a queue entry, or a request whose outcome is not known. */
  readonly grant: OwnGrant | undefined;
  /** When the nodes expire, on the scale of `clock.now()`. */
  readonly until: number;
}

interface Users {
  count: number;
  removal: Promise<void> | undefined;
}

const retryMs = 1_000;

/**
 * The tokens that have nodes of this driver. The server does not know the TTLs of grants and queue entries, so their driver removes them
 * when they have expired. Other drivers remove the grants of a process that has crashed.
 */
export class OwnTokens {
  readonly #clock: Clock;
  readonly #remove: (expired: OwnToken) => Promise<void>;
  readonly #tokens = new Map<string, OwnToken>();
  /** The requests and removals of a token that are under way. */
  readonly #users = new Map<string, Users>();
  #timer: Timer;
  #dueAt = Infinity;
  #isClosed = false;

  /** @param remove removes the nodes of an expired token. If it rejects, it is called again later */
  constructor(clock: Clock, remove: (expired: OwnToken) => Promise<void>) {
    this.#clock = clock;
    this.#remove = remove;
  }

  get(token: string): OwnToken | undefined {
    return this.#tokens.get(token);
  }

  grantOf(token: string): OwnGrant | undefined {
    return this.#tokens.get(token)?.grant;
  }

  set(own: OwnToken): void {
    this.#tokens.set(own.token, own);
    this.#schedule(own.until);
  }

  /** @param expected if given, a newer entry of the token stays */
  delete(token: string, expected?: OwnToken): void {
    if (expected === undefined || this.#tokens.get(token) === expected) {
      this.#tokens.delete(token);
    }
  }

  /**
   * Runs a request that may be granted. Until its end the nodes of its token are not removed, because the removal might end a
   * grant whose reply is under way.
   */
  async using<T>(token: string, request: () => Promise<T>): Promise<T> {
    const users: Users = this.#users.get(token) ?? { count: 0, removal: undefined };
    this.#users.set(token, users);
    users.count += 1;
    try {
      await users.removal;
      return await request();
    } finally {
      users.count -= 1;
      this.#forgetIdle(token);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#timer);
  }

  #schedule(at: number): void {
    if (at < this.#dueAt && !this.#isClosed) {
      this.#clock.clearTimer(this.#timer);
      this.#dueAt = at;
      this.#timer = this.#clock.setTimer(() => this.#expire(), Math.max(1, at - this.#clock.now()));
    }
  }

  #expire(): void {
    const now = this.#clock.now();
    this.#dueAt = Infinity;
    let next = Infinity;
    for (const own of this.#tokens.values()) {
      if (own.until <= now) {
        void this.#removeExpired(own);
      } else {
        next = Math.min(next, own.until);
      }
    }
    this.#schedule(next);
  }

  async #removeExpired(own: OwnToken): Promise<void> {
    const { token } = own;
    const retry = { ...own, until: this.#clock.now() + retryMs };
    this.#tokens.set(token, retry);
    if (this.#users.has(token)) {
      this.#schedule(retry.until);
      return;
    }
    const removal = this.#remove(own).then(
      () => this.delete(token, retry),
      () => this.#schedule(retry.until),
    );
    const users: Users = { count: 0, removal };
    this.#users.set(token, users);
    await removal;
    users.removal = undefined;
    this.#forgetIdle(token);
  }

  #forgetIdle(token: string): void {
    const users = this.#users.get(token);
    if (users?.count === 0 && users.removal === undefined) {
      this.#users.delete(token);
    }
  }
}
