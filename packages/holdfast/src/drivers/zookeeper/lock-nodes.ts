import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import type { StoreExtension } from "../store/lease-store.ts";
import { grantOf, type GrantValue, type GrantView, type ServerTime } from "./grants.ts";
import type { Inbox } from "./inbox.ts";
import type { OwnGrant, OwnToken, OwnTokens } from "./own-tokens.ts";
import { emptyView, type Paths, type View } from "./paths.ts";
import { codes, hasCode, ZooKeeperError } from "./wire/errors.ts";
import { check, create, getChildren, getData, multi, remove, setData } from "./wire/operations.ts";
import type { Access, Operation } from "./wire/operations.ts";
import type { Session } from "./wire/session.ts";

/** The parts that the requests of a driver share. */
export interface NodesHost {
  readonly session: Session;
  readonly paths: Paths;
  readonly own: OwnTokens;
  readonly inbox: Inbox;
  readonly time: ServerTime;
  readonly access: Access;
  readonly clock: Clock;
  readonly random: Random;
}

interface Extension extends Pick<StoreExtension, "key" | "token" | "ttlMs" | "info"> {
  readonly path: string;
}

/** A grant before its extension. */
interface Known extends Pick<GrantView, "owner" | "reason" | "labels" | "ttlMs" | "version"> {
  /** The end of its TTL, on the scale of `clock.now()`; absent: not known. */
  readonly until?: number;
}

/** How often an extension is written again, after a change of the grant. */
const maxRounds = 10;

/** Reads and changes the nodes of one lock. */
export class LockNodes {
  readonly #host: NodesHost;

  constructor(host: NodesHost) {
    this.#host = host;
  }

  /** The nodes of a lock, which may be older than the last change that another process has made. */
  view(key: string): Promise<View> {
    return this.#view(key, (operation) => this.#host.session.request(operation));
  }

  freshView(key: string): Promise<View> {
    return this.#view(key, (operation) => this.#host.session.freshly(operation));
  }

  /** The grant of a view; undefined: the lock is free, or the grant has ended since. */
  async grant({ held }: View): Promise<GrantView | undefined> {
    return held && this.#present(held.path);
  }

  async createLock(key: string): Promise<void> {
    const { session, paths, inbox, access } = this.#host;
    const lock = create(paths.lock(key), "", "container", access);
    try {
      await session.request(lock);
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        await inbox.createParents();
      } else if (!hasCode(error, codes.nodeExists)) {
        throw error;
      }
    }
  }

  /**
   * Starts the TTL of a grant again. The write demands the version that was known, because a late write of a shorter TTL would end a
   * validity on which the holder relies.
   * @returns the TTL in force, ms; undefined: the grant has ended
   */
  async extend(extension: Extension): Promise<number | undefined> {
    const { token, path } = extension;
    const { own } = this.#host;
    const known = own.get(token);
    let before: Known | undefined =
      known?.grant?.path === path ? { ...known.grant, until: known.until } : await this.#present(path);
    for (let rounds = 0; before !== undefined && rounds < maxRounds; rounds += 1) {
      const inForce = await this.#rewrite(extension, before);
      if (inForce !== undefined) {
        return inForce;
      }
      before = await this.#present(path);
    }
    if (before !== undefined) {
      const message = `the grant changed during ${maxRounds} requests`;
      throw new ZooKeeperError(message, { code: null, outcome: "unknown", retryable: true });
    }
    own.delete(token, known);
    return undefined;
  }

  /** @returns undefined if the grant has another version, or has ended */
  async #rewrite({ key, token, path, ttlMs, info }: Extension, before: Known): Promise<number | undefined> {
    const { session, own, inbox, time, clock } = this.#host;
    const sent = clock.now();
    const leftMs = before.until === undefined ? before.ttlMs : before.until - sent;
    const inForce = Math.max(ttlMs, Math.ceil(leftMs));
    const { owner, reason, labels } = { ...before, ...info };
    const value: GrantValue = { owner, reason, labels, ttlMs: inForce, client: inbox.id };
    try {
      const stat = await session.request(setData(path, JSON.stringify(value), before.version));
      time.learn(stat.changedAt);
      const { createdBy: fencingToken, version } = stat;
      const grant: OwnGrant = { path, fencingToken, version, ttlMs: inForce, owner, reason, labels };
      own.set({ token, key, grant, until: sent + inForce });
      return inForce;
    } catch (error) {
      if (hasCode(error, codes.badVersion) || hasCode(error, codes.noNode)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Whether the node of a grant exists, by the decision of a majority. */
  async exists(path: string): Promise<boolean> {
    return orMissing(
      this.#host.session.request(multi(check(path))).then(() => true),
      false,
    );
  }

  /** Ends a grant. @returns false if nothing was done, because a node is missing */
  async end(key: string, path: string): Promise<boolean> {
    return (await this.endWith(key, path, [])) !== undefined;
  }

  /**
   * Ends a grant, in one transaction with other operations.
   * @returns the results of the others; undefined if nothing was done, because a node is missing or has another version
   */
  async endWith(
    key: string,
    path: string,
    others: readonly Operation<unknown>[],
  ): Promise<unknown[] | undefined> {
    const ends = multi(remove(path), remove(this.#host.paths.grant(key)), ...others);
    try {
      const [, , ...results] = await this.#host.session.request(ends);
      return results;
    } catch (error) {
      if (hasCode(error, codes.noNode) || hasCode(error, codes.badVersion)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Removes all nodes of a token. @returns whether the token had a grant */
  async removeToken(key: string, token: string): Promise<boolean> {
    const { held, entries } = await this.freshView(key);
    const own = entries.filter((entry) => entry.token === token).map(({ path }) => path);
    const [wasHeld] = await Promise.all([
      held?.token === token ? this.end(key, held.path) : false,
      this.removeAll(own),
    ]);
    return wasHeld;
  }

  async removeAll(paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map((path) => orMissing(this.#host.session.request(remove(path)), undefined)));
  }

  /** Removes the expired nodes of a token of this driver. A grant that was extended elsewhere stays. */
  async removeExpired(expired: OwnToken): Promise<void> {
    const { session, own, inbox, clock, paths } = this.#host;
    const { key, token, grant } = expired;
    if (grant === undefined) {
      await this.removeToken(key, token);
      return;
    }
    const ends = multi(remove(grant.path, grant.version), remove(paths.grant(key)));
    try {
      await session.request(ends);
    } catch (error) {
      if (!hasCode(error, codes.badVersion)) {
        return orMissing(Promise.reject(error as Error), undefined);
      }
      const present = await this.#present(grant.path);
      if (present?.client === inbox.id) {
        // The reply to an extension was lost.
        const { version, ttlMs } = present;
        own.set({ key, token, grant: { ...grant, version, ttlMs }, until: clock.now() + ttlMs });
      }
    }
  }

  async #view(key: string, send: (operation: Operation<string[]>) => Promise<string[]>): Promise<View> {
    const { paths } = this.#host;
    const names = await orMissing(send(getChildren(paths.lock(key))), undefined);
    return names ? paths.view(key, names) : emptyView;
  }

  /** A grant as the server has it; undefined: the grant has ended. */
  #present(path: string): Promise<GrantView | undefined> {
    const { session } = this.#host;
    return orMissing(
      session.request(getData(path)).then((node) => grantOf(path, node)),
      undefined,
    );
  }
}

/** The result of a request, or another value if the node does not exist. */
export async function orMissing<T, U>(result: Promise<T>, missing: U): Promise<T | U> {
  try {
    return await result;
  } catch (error) {
    if (hasCode(error, codes.noNode)) {
      return missing;
    }
    throw error;
  }
}
