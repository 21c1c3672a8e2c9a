import type { Capabilities, ListQuery } from "../../../driver.ts";
import { isLockError, LockError, type LossReason } from "../../../errors.ts";
import { exists, type LockState, type NodeState } from "../../../lock-state.ts";
import { instantNow } from "../../../runtime/clock.ts";
import { jittered } from "../../../runtime/random.ts";
import type {
  BrokenGrant,
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreListener,
  StoreReply,
} from "../../store/lease-store.ts";
import type { PollLimits } from "../../store/poll-delay.ts";
import type { Connection } from "../clients/connection.ts";
import type { RedisSettings } from "../options.ts";
import { clientKey, counterKey, KeySpace, withHashTag } from "../protocol/keys.ts";
import { handshakeScript } from "../protocol/scripts.generated.ts";
import { queueFullError } from "../server/errors.ts";
import { nodeStateOf, parseHandshake } from "../server/handshake.ts";
import { LayoutCalls, layoutFailure } from "./calls.ts";
import type { LayoutParts, LayoutRules } from "./layout.ts";
import { encodeLayoutMetadata, parseAcquire, parseRemaining, parseState } from "./replies.ts";
import { WakeUps } from "./wake-ups.ts";

const dayMs = 86_400_000;
/** The most holders and waiters in a state. */
const shown = 100;
/**
 * The most time until a queue entry expires, ms. It is longer than any delay between two polls. A shorter time would let a dead waiter
 * delay the others less, and a slow one lose its place more often.
 */
const maxEntryTtlMs = 2_500;
/** With jitter up to 375 ms, so a lock has at most 4 such polls a second. */
const shortestForeignPollMs = 250;
/** How long one page of a list may take, ms. */
const pageBudgetMs = 250;
/** The keys of this library beside the lock key. */
const sideKeys = ["queue", "seen", "notes", "records"];

/** Locks on one server, stored as another library does. Each operation is one script. */
export class LayoutStore implements LeaseStore {
  readonly capabilities: Capabilities;
  readonly pollLimits: PollLimits | undefined;
  readonly #rules: LayoutRules;
  readonly #settings: RedisSettings;
  readonly #calls: LayoutCalls;
  readonly #keySpace: KeySpace;
  readonly #prefix: string;
  readonly #ownChannel: string;
  readonly #wakeUps: WakeUps;

  constructor(connection: Connection, rules: LayoutRules, settings: RedisSettings) {
    this.pollLimits = rules.pollLimits;
    this.#rules = rules;
    this.#settings = settings;
    this.#calls = new LayoutCalls(connection, settings);
    this.#keySpace = new KeySpace(connection.keyPrefix, settings.prefix);
    this.#prefix = connection.keyPrefix + settings.prefix;
    rules.checkPrefix?.(this.#prefix);
    this.#ownChannel = `holdfast:layout:${this.#prefix}`;
    this.#wakeUps = new WakeUps({
      connection,
      ownChannel: this.#ownChannel,
      commonChannel: rules.commonChannel?.(this.#prefix),
    });
    this.capabilities = {
      engine: "redis",
      kinds: rules.kinds,
      unsupported: rules.unsupported,
      guarantee: "server",
      waiting: this.#partsOf(this.#prefix).wakeChannel ? "notify" : "poll",
      requeue: false,
      fencingBlocks: false,
      maxTtlMs: dayMs,
      claimMs: dayMs,
    };
  }

  get isNotified(): boolean {
    return this.capabilities.waiting === "notify" && this.#wakeUps.isComplete;
  }

  checkKey(key: string): void {
    this.#keySpace.keysOf(key);
  }

  async acquire(attempt: StoreAttempt): Promise<StoreReply> {
    const { key, token, lockMode } = attempt;
    this.#assertTtl(attempt);
    this.#wakeUps.open();
    const reply = await this.#request(attempt);
    const foreignPollMs = jittered(this.#settings.random, shortestForeignPollMs, 0.5);
    const parsed = parseAcquire(reply, { library: this.#rules.library, foreignPollMs });
    const lock = this.#lockOf(key);
    if (parsed?.outcome === "queued") {
      const { wakeChannel } = this.#partsOf(lock);
      this.#wakeUps.waits(lock, wakeChannel?.(lockMode !== undefined), { token, ticket: parsed.ticket });
    } else {
      this.#wakeUps.left(lock, token);
    }
    if (parsed === undefined) {
      throw queueFullError(key);
    }
    return parsed;
  }

  async #request(attempt: StoreAttempt): Promise<readonly unknown[]> {
    const { key, token, lockMode, ttlMs, waitMs, ticket = "", entryTtlMs, owner } = attempt;
    const mode = lockMode?.kind === "read-write" ? lockMode.mode.slice(0, 1) : "";
    const entryMs =
      waitMs === null || waitMs <= 0 ? "" : Math.ceil(Math.min(entryTtlMs, maxEntryTtlMs, waitMs));
    const metadata = encodeLayoutMetadata(attempt);
    const { queueBound } = this.#settings;
    const args = [token, mode, ttlMs, entryMs, ticket, owner, metadata, queueBound];
    return (await this.#run("acquire", key, args)) as unknown[];
  }

  async extend(extension: StoreExtension): Promise<number | LossReason> {
    const { key, token, ttlMs, fencingToken, info } = extension;
    const metadata = info ? encodeLayoutMetadata(info) : "";
    return parseRemaining(await this.#run("extend", key, [token, ttlMs, fencingToken, metadata]));
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    return parseRemaining(await this.#run("verify", key, [token, fencingToken ?? ""]));
  }

  async release(key: string, token: string): Promise<boolean> {
    this.#wakeUps.left(this.#lockOf(key), token);
    return Number(await this.#run("release", key, [token])) === 1;
  }

  async downgrade(key: string, token: string): Promise<boolean> {
    return Number(await this.#run("downgrade", key, [token])) === 1;
  }

  /** The core does not call this, because there is no semaphore. */
  async setLimit(): Promise<void> {
    // nothing has a limit
  }

  async inspect(key: string): Promise<LockState> {
    const reply = (await this.#run("inspect", key, ["", shown])) as unknown[];
    return parseState(reply, { key, node: this.#calls.connection.name, library: this.#rules.library });
  }

  isCursor(text: string): boolean {
    return /^\d{1,20}$/.test(text);
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const { clock } = this.#settings;
    const end = clock.now() + pageBudgetMs;
    const locks: LockState[] = [];
    let next = cursor ?? "0";
    do {
      const match = ["MATCH", this.#keySpace.patternOf(prefix), "COUNT", String(limit)];
      const scan = [next, ...match, "TYPE", this.#rules.type];
      const [position, found] = (await this.#calls.connection.command("SCAN", scan)) as [unknown, unknown[]];
      next = String(position);
      locks.push(...(await this.#statesOf(found.map(String))));
    } while (next !== "0" && locks.length < limit && clock.now() < end);
    return { locks, cursor: next === "0" ? null : next };
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<BrokenGrant | null> {
    const token = (await this.#run("break", key, ["", fencingToken, reason])) as string | null;
    return token === null ? null : { token };
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    return Number(await this.#run("current", key, ["", fencingToken])) === 1;
  }

  async nodes(): Promise<NodeState[]> {
    const { connection } = this.#calls;
    const { clock } = this.#settings;
    const handshake = async () =>
      parseHandshake(
        (await connection.run(handshakeScript, [clientKey("")], ["", "n", "", "1"])) as unknown[],
      );
    const notifications = this.#wakeUps.isConnected ? "verified" : "unverified";
    const source = { node: connection.name, clock, sent: instantNow(clock), notifications } as const;
    return [await nodeStateOf(source, handshake)];
  }

  failureOf(error: unknown): StoreFailure {
    return layoutFailure(error);
  }

  subscribe(listener: StoreListener): () => void {
    return this.#wakeUps.listen(listener);
  }

  async close(): Promise<void> {
    this.#calls.connection.close?.();
  }

  /** Runs one operation. @param args the token, then the arguments of the operation */
  #run(operation: string, key: string, args: readonly (string | number | bigint)[]): Promise<unknown> {
    const lock = this.#lockOf(key);
    const { counter, keys, channels, detail } = this.#partsOf(lock);
    const tagged = withHashTag(lock);
    const own = sideKeys.map((name) => `holdfast:layout:${name}:${tagged}`);
    return this.#calls.run(
      key,
      this.#rules.script,
      [lock, ...own, counter ?? counterKey(), ...keys],
      [operation, this.#ownChannel, ...channels, detail, ...args.map(String)],
    );
  }

  #partsOf(lock: string): LayoutParts {
    return this.#rules.partsOf(lock, this.#prefix, this.#settings.clock.wall());
  }

  #lockOf(key: string): string {
    return this.#keySpace.keysOf(key)[0];
  }

  /** The states of the locks among these keys. A key of another kind, or without holder, is left out. */
  async #statesOf(locks: readonly string[]): Promise<LockState[]> {
    const keys = locks.flatMap((lock) => this.#keySpace.keyOf(lock) ?? []);
    const states = await Promise.all(
      keys.map((key) =>
        this.inspect(key).catch((error: unknown) => {
          if (isLockError(error, "kind-mismatch")) {
            return undefined;
          }
          throw error;
        }),
      ),
    );
    return states.filter((state) => state !== undefined && exists(state)) as LockState[];
  }

  #assertTtl({ key, lockMode, ttlMs }: StoreAttempt): void {
    const { name, maxSharedTtlMs = Infinity } = this.#rules;
    if (lockMode !== undefined && ttlMs > maxSharedTtlMs) {
      const reason = `a renewal of Redisson would end a longer one early, got ${ttlMs}`;
      const message = `"${key}": the layout "${name}" has read-write locks with a TTL up to ${maxSharedTtlMs} ms, because ${reason}`;
      throw new LockError(message, { code: "unsupported", key });
    }
  }
}
