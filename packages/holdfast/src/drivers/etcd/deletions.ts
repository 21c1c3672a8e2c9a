import { backoffMs } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import type { Gateway } from "./gateway.ts";
import { decode, startingWith, type Keys } from "./keys.ts";
import { grantOf, type GrantView, type KeyValue } from "./kv.ts";
import type { ResolvedOptions } from "./options.ts";

interface WatchReply {
  readonly result?: {
    readonly created?: boolean;
    readonly canceled?: boolean;
    readonly events?: readonly { readonly kv: KeyValue; readonly prev_kv?: KeyValue }[];
  };
}

export interface DeletionListener {
  /** The key for which a waiter waited was deleted. */
  wake(ticket: string): void;
  /** A grant has ended. */
  ended(key: string, grant: GrantView): void;
  interrupted(): void;
}

/** How many deletions are remembered for requests that are under way. */
const maxRecent = 1_000;

/** Watches the deletions of all keys of a store, by one stream. */
export class Deletions {
  isArriving = false;
  readonly #gateway: Gateway;
  readonly #keys: Keys;
  readonly #options: Pick<ResolvedOptions, "clock" | "random">;
  /** The tickets of waiters by the key for whose deletion they wait. */
  readonly #tickets = new Map<string, string>();
  /** The revisions of the last deletions. */
  readonly #recent = new Map<string, bigint>();

  constructor(gateway: Gateway, keys: Keys, options: Pick<ResolvedOptions, "clock" | "random">) {
    this.#gateway = gateway;
    this.#keys = keys;
    this.#options = options;
  }

  /**
   * Wakes the waiter with this ticket at the next deletion of a key.
   * @param since the revision at which the key was read
   * @returns false if the key has been deleted since
   */
  wakeAfter(key: string, since: bigint, ticket: string): boolean {
    if ((this.#recent.get(key) ?? 0n) > since) {
      return false;
    }
    this.#tickets.set(key, ticket);
    return true;
  }

  /** @returns a function that ends the watch */
  subscribe(listener: DeletionListener): () => void {
    const stopped = new AbortController();
    void this.#run(listener, stopped.signal);
    return () => stopped.abort();
  }

  async #run(listener: DeletionListener, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.#watch(listener, signal);
      } catch {
        // the stream is opened again
      }
      if (this.isArriving) {
        failures = 0;
        this.isArriving = false;
        this.#tickets.clear();
        listener.interrupted(); // waiters poll at short intervals from now on
      }
      await pause(clock, backoffMs(random, failures), false, signal);
    }
  }

  async #watch(listener: DeletionListener, signal: AbortSignal): Promise<void> {
    const request = { ...startingWith(this.#keys.all), filters: ["NOPUT"], prev_kv: true };
    const replies = this.#gateway.stream<WatchReply>("watch", { create_request: request }, signal);
    for await (const { result } of replies) {
      if (result === undefined || result.canceled === true || signal.aborted) {
        return;
      }
      if (result.created === true) {
        this.isArriving = true;
        listener.interrupted(); // deletions before this moment were not reported
      }
      for (const { kv, prev_kv } of result.events ?? []) {
        this.#deleted(decode(kv.key), BigInt(kv.mod_revision), prev_kv, listener);
      }
    }
  }

  #deleted(text: string, revision: bigint, previous: KeyValue | undefined, listener: DeletionListener): void {
    this.#recent.delete(text);
    this.#recent.set(text, revision);
    if (this.#recent.size > maxRecent) {
      this.#recent.delete(this.#recent.keys().next().value as string);
    }
    const ticket = this.#tickets.get(text);
    this.#tickets.delete(text);
    if (ticket !== undefined) {
      listener.wake(ticket);
    }
    const key = this.#keys.keyOfGrant(text);
    if (key !== undefined && previous) {
      listener.ended(key, grantOf(previous));
    }
  }
}
