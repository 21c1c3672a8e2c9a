import type { Capabilities, ListQuery } from "../../../driver.ts";
import { isLockError, LockError, type LossReason } from "../../../errors.ts";
import { exists, type LockState, type NodeState } from "../../../lock-state.ts";
import { invalidCursor } from "../../../option-checks.ts";
import { instantNow } from "../../../runtime/clock.ts";
import type {
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreListener,
  StoreReply,
} from "../../store/lease-store.ts";
import type { Connection } from "../clients/connection.ts";
import type { RedisSettings } from "../options.ts";
import { clientKey, counterKey, KeySpace, withHashTag } from "../protocol/keys.ts";
import { handshakeScript } from "../protocol/scripts.generated.ts";
import { queueFullError } from "../server/errors.ts";
import { nodeStateOf, parseHandshake } from "../server/handshake.ts";
import { LayoutCalls, layoutFailure } from "./calls.ts";
import type { LayoutRules } from "./layout.ts";
import { encodeMetadata, parseAcquire, parseRemaining, parseState } from "./replies.ts";
import { WakeUps } from "./wake-ups.ts";

const dayMs = 86_400_000;
/** The most holders and waiters in a state. */
const shown = 100;
/** How long one page of a list may take, ms. */
const pageBudgetMs = 250;
/** The keys of this library beside the lock key. */
const sideKeys = ["queue", "seen", "notes", "records"];

/** Locks on one server, stored as another library does. Each operation is one script. */
export class LayoutStore implements LeaseStore {
  readonly capabilities: Capabilities;
  readonly #rules: LayoutRules;
  readonly #settings: RedisSettings;
  readonly #calls: LayoutCalls;
  readonly #keySpace: KeySpace;
  readonly #prefix: string;
  readonly #ownChannel: string;
  readonly #wakeUps: WakeUps;

  constructor(connection: Connection, rules: LayoutRules, settings: RedisSettings) {
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
      kinds: rules.kinds,
      unsupported: rules.unsupported,
      guarantee: "server",
      waiting: this.#isAnnounced("") ? "notify" : "poll",
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
    const { key, token, lockMode, ttlMs, waitMs, ticket = "", entryTtlMs, owner } = attempt;
    const isReadWrite = lockMode?.kind === "read-write";
    const { maxSharedTtlMs = Infinity } = this.#rules;
    if (isReadWrite && ttlMs > maxSharedTtlMs) {
      throw this.#longTtl(key, ttlMs, maxSharedTtlMs);
    }
    const mode = isReadWrite ? lockMode.mode.slice(0, 1) : "";
    const entryMs = waitMs === null || waitMs <= 0 ? "" : Math.ceil(Math.min(entryTtlMs, waitMs));
    this.#wakeUps.open();
    const reply = (await this.#run("acquire", key, [
      token,
      mode,
      ttlMs,
      entryMs,
      ticket,
      owner,
      encodeMetadata(attempt),
      this.#settings.queueBound,
    ])) as unknown[];
    const parsed = parseAcquire(reply, this.#rules.library);
    const lock = this.#lockOf(key);
    if (parsed?.outcome === "queued") {
      const channel = this.#rules.partsOf(lock, this.#prefix).wakeChannel?.(isReadWrite);
      this.#wakeUps.waits(lock, channel, { token, ticket: parsed.ticket });
    } else {
      this.#wakeUps.left(lock, token);
    }
    if (parsed === undefined) {
      throw queueFullError(key);
    }
    return parsed;
  }

  async extend(extension: StoreExtension): Promise<number | LossReason> {
    const { key, token, ttlMs, fencingToken, info } = extension;
    const metadata = info ? encodeMetadata(info) : "";
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

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    if (cursor !== null && !/^\d{1,20}$/.test(cursor)) {
      throw invalidCursor(cursor);
    }
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

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<string | null> {
    const holder = await this.#run("break", key, ["", fencingToken, reason]);
    return holder === null ? null : String(holder);
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
    const replication = (): Promise<unknown> => connection.command("INFO", ["replication"]);
    const notifications = this.#wakeUps.isConnected ? "verified" : "unverified";
    const source = { node: connection.name, clock, sent: instantNow(clock), notifications } as const;
    return [await nodeStateOf(source, { handshake, replication })];
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
    const { counter, keys, channels, detail } = this.#rules.partsOf(lock, this.#prefix);
    const tagged = withHashTag(lock);
    const own = sideKeys.map((name) => `holdfast:layout:${name}:${tagged}`);
    return this.#calls.run(
      key,
      this.#rules.script,
      [lock, ...own, counter ?? counterKey(), ...keys],
      [operation, this.#ownChannel, ...channels, detail, ...args.map(String)],
    );
  }

  #lockOf(key: string): string {
    return this.#keySpace.keysOf(key)[0];
  }

  #isAnnounced(lock: string): boolean {
    return this.#rules.partsOf(this.#prefix + lock, this.#prefix).wakeChannel !== undefined;
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

  #longTtl(key: string, ttlMs: number, maxTtlMs: number): LockError {
    const reason = `Redisson's renewals would cut a longer one; the request has ${ttlMs} ms`;
    return new LockError(
      `"${key}": the layout "${this.#rules.name}" has read-write locks with a TTL up to ${maxTtlMs} ms: ${reason}`,
      { code: "unsupported", key },
    );
  }
}
