import { ServiceError } from "./refusal.ts";

/** One key that a principal holds. Its fencing token identifies the grant. */
interface HeldKey {
  readonly key: string;
  readonly fencingToken: bigint | string;
}

/** How many keys are checked at a time when a principal has reached its limit. */
const checkedAtOnce = 64;

/** The keys that each principal holds by this instance, the oldest first. Each key counts until its own grant ends. */
export class HeldKeys {
  readonly #ofQuota = new Map<string, Map<string, HeldKey>>();
  /** The principal of each grant. */
  readonly #quotas = new Map<string, string>();
  readonly #checks = new Map<string, Promise<void>>();
  readonly #max: number;
  readonly #hasEnded: (key: string, fencingToken: bigint) => Promise<boolean>;

  /** @param hasEnded asks the engine whether a grant has ended */
  constructor(max: number, hasEnded: (key: string, fencingToken: bigint) => Promise<boolean>) {
    this.#max = max;
    this.#hasEnded = hasEnded;
  }

  /**
   * Checks that there is room for some more. At the limit the engine is asked for the oldest keys, because another instance may have
   * released them.
   * @throws {ServiceError} `rate-limited`
   */
  async check(quota: string, more: number): Promise<void> {
    if (this.#countOf(quota) + more > this.#max) {
      const check =
        this.#checks.get(quota) ?? this.#forgetEnded(quota).finally(() => this.#checks.delete(quota));
      this.#checks.set(quota, check);
      await check;
    }
    this.#assertRoom(quota, more);
  }

  /**
   * Counts the keys of a new lease.
   * @throws {ServiceError} `rate-limited`, and none is counted
   */
  begin(quota: string, held: readonly HeldKey[]): void {
    this.#assertRoom(quota, held.length);
    this.renewed(quota, held);
  }

  /** Counts keys that are held without a doubt, also beyond the limit. */
  renewed(quota: string, held: readonly HeldKey[]): void {
    for (const { key, fencingToken } of held) {
      const id = idOf(key, fencingToken);
      if (!this.#quotas.has(id)) {
        const own = this.#ofQuota.get(quota) ?? new Map<string, HeldKey>();
        this.#ofQuota.set(quota, own.set(id, { key, fencingToken }));
        this.#quotas.set(id, quota);
      }
    }
  }

  /** The grant has ended. */
  ended({ key, fencingToken }: HeldKey): void {
    const id = idOf(key, fencingToken);
    const quota = this.#quotas.get(id) ?? "";
    const own = this.#ofQuota.get(quota);
    if (this.#quotas.delete(id) && own?.delete(id) === true && own.size === 0) {
      this.#ofQuota.delete(quota);
    }
  }

  #countOf(quota: string): number {
    return this.#ofQuota.get(quota)?.size ?? 0;
  }

  #assertRoom(quota: string, more: number): void {
    const present = this.#countOf(quota);
    if (present + more > this.#max) {
      throw new ServiceError(
        "rate-limited",
        `"${quota}" has ${present} held keys by this instance, and the limit is ${this.#max}`,
      );
    }
  }

  async #forgetEnded(quota: string): Promise<void> {
    const own = this.#ofQuota.get(quota) ?? new Map<string, HeldKey>();
    await Promise.all(
      [...own].slice(0, checkedAtOnce).map(async ([id, held]) => {
        own.delete(id);
        own.set(id, held); // the next check is of others
        if (await this.#hasEnded(held.key, BigInt(held.fencingToken)).catch(() => false)) {
          this.ended(held);
        }
      }),
    );
  }
}

function idOf(key: string, fencingToken: bigint | string): string {
  return `${fencingToken} ${key}`;
}
