import type { Clock } from "../../runtime/clock.ts";
import { md5 as md5Of, type Random } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import type { NacosClient, Stored } from "./client.ts";
import {
  dataIdOf,
  decodeDocument,
  encodeDocument,
  newDocument,
  patternOf,
  type LockDocument,
  type Stamp,
} from "./document.ts";
import { isConflict, isServerError, NacosError } from "./errors.ts";
import type { ServerTime } from "./server-time.ts";

/** A lock as it was read, or as this driver has written it. */
export interface View {
  readonly document: LockDocument;
  /** Undefined: the configuration does not exist. */
  readonly md5: string | undefined;
  /** Whether the lock was read for the present request. */
  readonly isFresh: boolean;
  /** The earliest time that the server may have had at the read, ms since 1970; undefined: unknown. */
  readonly readAt: number | undefined;
}

/** The result of a request, and the document that has to be written first. */
export interface Decision<T> {
  readonly result: T;
  /** Undefined: nothing has to be written. */
  readonly next?: LockDocument | undefined;
  /** Called if the write fails and may have been executed. */
  readonly unconfirmed?: (() => void) | undefined;
}

interface DocumentsHost {
  readonly client: NacosClient;
  readonly time: ServerTime;
  readonly clock: Clock;
  readonly random: Random;
}

/** How often a request is decided again, after a change of the lock. */
const maxRounds = 40;
/** The longest pause before a request is decided again, ms. It grows to this limit in steps of a tenth. */
const maxPauseMs = 50;
const maxCached = 1_000;
/** No content has this MD5, so a publication with it can only create a configuration. */
const noMd5 = "0".repeat(32);

// The algorithm rests on these facts of the source of Nacos (versions 2.3.2, 2.5.1 and 3.1).
//
// `ConfigOperationService.publishConfig` passes `casMd5` to `insertOrUpdateCas`. If the row exists, one statement of the database decides:
// `UPDATE config_info … WHERE data_id=? AND group_id=? AND tenant_id=? AND (md5=? OR md5 IS NULL OR md5='')` (`ConfigInfoMapper`). With an
// external database the statement locks the row. With the embedded database it runs in the order of the Raft log, on every server.
//
// If the row does not exist, it is inserted. The embedded database reports a refused insertion as a success (issue 13810), so a creation
// proves nothing. This driver creates configurations without a grant, and reads them before it writes a grant.
//
// A follower of the embedded database reports a refused statement as status 500 (`JRaftServer.invokeToLeader`), like other failures. After
// each refusal and each status 500 this driver reads the configuration, whose MD5 shows whether its write is there.
//
// A deletion has no compare-and-set, so this driver deletes nothing.

/** The configurations of locks. Each change replaces the content that it is based on, or fails. */
export class Documents {
  readonly #host: DocumentsHost;
  /** The last known documents. A write that is based on an old one fails. */
  readonly #cached = new Map<string, View>();

  constructor(host: DocumentsHost) {
    this.#host = host;
  }

  /** The ID and the time of the next write. */
  stamp(): Stamp {
    return { id: this.#host.random.id(), at: this.#host.time.now() ?? null };
  }

  async read(key: string): Promise<View> {
    const dataId = dataIdOf(key);
    const stored = await this.#host.client.read(dataId);
    if (stored === undefined) {
      return { document: this.#empty(key), md5: undefined, isFresh: true, readAt: undefined };
    }
    const view = this.#viewOf(stored);
    if (view?.document.key !== key) {
      const message = `another program has written the configuration ${dataId}`;
      throw new NacosError(message, { outcome: "none", retryable: false });
    }
    return view;
  }

  /** The locks with a prefix, on one page of the configurations. */
  async list(prefix: string, page: number, size: number): Promise<{ views: View[]; isLast: boolean }> {
    const { client } = this.#host;
    const { dataIds, isLast } = await client.list(patternOf(prefix), page, size);
    const stored = await Promise.all(dataIds.map((dataId) => client.read(dataId)));
    const views = stored.map((one) => one && this.#viewOf(one));
    return { views: views.filter((view) => view?.document.key.startsWith(prefix)) as View[], isLast };
  }

  /**
   * Decides a request on the present document, and writes the next one. If another write comes first, the request is decided again.
   * After a failure the write may have been executed, and the repeat must recognise its effect.
   */
  async update<T>(key: string, decide: (view: View) => Decision<T>): Promise<T> {
    let view = this.#cached.get(key);
    for (let rounds = 1; rounds <= maxRounds; rounds += 1) {
      view ??= await this.read(key);
      const { result, next, unconfirmed } = decide(view);
      if (next === undefined && view.isFresh) {
        return result;
      }
      const newer: View | undefined = next && (await this.#write(view, next, unconfirmed));
      if (next && newer === undefined) {
        return result;
      }
      view = newer;
      if (rounds > 1) {
        const { clock, random } = this.#host;
        await pause(clock, random.nextFloat() * Math.min(maxPauseMs, rounds * (maxPauseMs / 10)));
        view = undefined;
      }
    }
    const message = `the lock changed during ${maxRounds} requests`;
    throw new NacosError(message, { outcome: "unknown", retryable: true });
  }

  /** @returns undefined if the document was written, or the present one */
  async #write(view: View, next: LockDocument, unconfirmed?: () => void): Promise<View | undefined> {
    const { key } = next;
    const isCreation = view.md5 === undefined;
    const content = encodeDocument(isCreation ? this.#empty(key) : next);
    const md5 = md5Of(content);
    this.#cached.delete(key);
    try {
      await this.#publish(key, content, view.md5 ?? noMd5, unconfirmed);
    } catch (error) {
      if (!isServerError(error) && !isConflict(error)) {
        throw error;
      }
      const present = await this.read(key);
      if (present.md5 === view.md5 && !isConflict(error)) {
        throw error; // the write may be executed later
      }
      if (isCreation || present.md5 !== md5) {
        return present;
      }
    }
    if (isCreation) {
      return this.read(key);
    }
    this.#cache({ document: next, md5, isFresh: false, readAt: undefined });
    return undefined;
  }

  async #publish(key: string, content: string, md5: string, unconfirmed?: () => void): Promise<void> {
    try {
      await this.#host.client.publish(dataIdOf(key), content, md5);
    } catch (error) {
      if (!isConflict(error)) {
        unconfirmed?.();
      }
      throw error;
    }
  }

  /** @returns undefined if another program has written the content */
  #viewOf({ content, md5, readAt }: Stored): View | undefined {
    const document = decodeDocument(content);
    const view = document && { document, md5, isFresh: true, readAt };
    if (view) {
      this.#cache(view);
    }
    return view;
  }

  #empty(key: string): LockDocument {
    const stamp = this.stamp();
    return newDocument(key, stamp, stamp.at ?? this.#host.clock.wall());
  }

  #cache(view: View): void {
    const { key } = view.document;
    this.#cached.delete(key);
    this.#cached.set(key, { ...view, isFresh: false, readAt: undefined });
    if (this.#cached.size > maxCached) {
      this.#cached.delete(this.#cached.keys().next().value as string);
    }
  }
}
