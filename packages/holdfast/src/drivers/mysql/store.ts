import type { Capabilities, ListQuery } from "../../driver.ts";
import { kindMismatch, limitMismatch, LockError, type LossReason } from "../../errors.ts";
import type { HeldKind, LockState, NodeState } from "../../lock-state.ts";
import type { AuditRecord, BreakNote } from "../../operator/audit.ts";
import type { Clock } from "../../runtime/clock.ts";
import { encodeNote, recordOf } from "../store/audit-note.ts";
import type {
  BrokenGrant,
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreReply,
} from "../store/lease-store.ts";
import { sharesOf } from "../store/shares.ts";
import { SweepSchedule } from "../store/sweep-schedule.ts";
import { bytes, textOf, type Database, type MysqlValue, type Row } from "./client.ts";
import { isDeadlock, isMissingSchema, mysqlFailure } from "./errors.ts";
import { nodeOf } from "./node.ts";
import type { ResolvedOptions } from "./options.ts";
import { maxSweptRows, procedureName } from "./procedures.ts";
import { encodeInfo, holderOf } from "./rows.ts";
import { mysqlSchema } from "./schema.ts";
import { statesOf } from "./views.ts";

const dayMs = 86_400_000;
const sweepEveryMs = 60_000;
const maxTries = 5;

/** The leases of one database. Each change is one call of a procedure. */
export class MysqlStore implements LeaseStore {
  readonly capabilities: Capabilities = {
    engine: "mysql",
    kinds: ["mutex", "read-write", "semaphore"],
    guarantee: "database",
    waiting: "poll",
    requeue: false,
    fencingBlocks: false,
    maxTtlMs: dayMs,
    claimMs: dayMs,
  };
  readonly isNotified = false;
  readonly #database: Database;
  readonly #createsSchema: boolean;
  readonly #clock: Clock;
  #isChecked: boolean;
  #creating: Promise<void> | undefined;
  readonly #sweeps: SweepSchedule;

  constructor(
    database: Database,
    {
      createSchema,
      maxClockDifferenceMs,
      clock,
    }: Pick<ResolvedOptions, "createSchema" | "maxClockDifferenceMs" | "clock">,
  ) {
    this.#database = database;
    this.#createsSchema = createSchema;
    this.#isChecked = maxClockDifferenceMs !== undefined;
    this.#clock = clock;
    this.#sweeps = new SweepSchedule(clock, sweepEveryMs, maxSweptRows);
  }

  checkKey(): void {
    // every key of the library fits
  }

  async acquire(attempt: StoreAttempt): Promise<StoreReply> {
    const { key, token, waitMs, ticket, owner } = attempt;
    const { kind, weight, capacity, anyLimit } = sharesOf(attempt.lockMode);
    const reply = await this.#call("acquire", [
      bytes(key),
      bytes(token),
      kind,
      weight,
      capacity,
      anyLimit ? 1 : 0,
      micros(attempt.ttlMs),
      waitMs === null ? null : micros(Math.min(waitMs, 1e12)),
      ticket ?? null,
      micros(attempt.entryTtlMs),
      bytes(owner),
      encodeInfo(attempt),
    ]);
    const position = Number(reply["position"]);
    switch (textOf(reply["outcome"])) {
      case "granted":
        return { outcome: "granted", fencingToken: BigInt(textOf(reply["fencing"])) };
      case "queued": {
        const remainingMs = reply["soonestMs"] === null ? Infinity : Number(reply["soonestMs"]);
        return { outcome: "queued", ticket: textOf(reply["ticket"]), position, remainingMs };
      }
      case "kind":
        throw kindMismatch(key, textOf(reply["present"]));
      case "limit":
        throw limitMismatch(key, Number(reply["present"]));
      default:
        return { outcome: "held", position, holder: firstHolder(reply) };
    }
  }

  async extend({ key, token, fencingToken, ttlMs, info }: StoreExtension): Promise<number | LossReason> {
    return this.#extend(key, token, fencingToken, micros(ttlMs), info ? encodeInfo(info) : null);
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    return this.#extend(key, token, fencingToken ?? 2n ** 63n - 1n, null, null);
  }

  async release(key: string, token: string): Promise<boolean> {
    const { held } = await this.#call("release", [bytes(key), bytes(token)]);
    this.#sweepSometimes();
    return Number(held) === 1;
  }

  async downgrade(key: string, token: string): Promise<boolean> {
    const { held } = await this.#call("downgrade", [bytes(key), bytes(token)]);
    return Number(held) === 1;
  }

  async setLimit(key: string, limit: number): Promise<void> {
    const { present } = await this.#call("limit", [bytes(key), limit]);
    if (present !== null) {
      throw kindMismatch(key, textOf(present));
    }
  }

  async inspect(key: string): Promise<LockState> {
    return statesOf([key], await this.#results("states", [bytes(key), bytes(key)]))[0] as LockState;
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const after = cursor === null ? null : bytes(cursor.slice(1));
    const [rows = []] = await this.#results("held_keys", [bytes(prefix), after, limit + 1]);
    const keys = rows.map((row) => textOf(row["k"]));
    const page = keys.slice(0, limit);
    const range = [page[0] ?? "", page.at(-1) ?? ""].map(bytes);
    const states = page.length === 0 ? [] : statesOf(page, await this.#results("states", range));
    const locks = states.filter(({ holders }) => holders.length > 0);
    return { locks, cursor: keys.length > limit ? `>${keys[limit - 1]}` : null };
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note: BreakNote | undefined,
  ): Promise<BrokenGrant | null> {
    const record = note ? bytes(encodeNote(reason, note)) : null;
    const values = [bytes(key), fencingToken.toString(), bytes(reason), record];
    const { token, auditId } = await this.#call("break", values);
    return token === null ? null : { token: textOf(token), auditId: note && textOf(auditId) };
  }

  async audit(): Promise<AuditRecord[]> {
    const [rows = []] = await this.#results("audit", []);
    return rows.map((row) =>
      recordOf({
        id: textOf(row["id"]),
        at: Number(row["at"]),
        key: textOf(row["k"]),
        fencingToken: BigInt(textOf(row["fencing"])),
        note: textOf(row["note"]),
      }),
    );
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    const { live } = await this.#call("is_current", [bytes(key), fencingToken.toString()]);
    return Number(live) > 0;
  }

  async nodes(): Promise<NodeState[]> {
    return [await nodeOf(this.#database, this.#clock)];
  }

  failureOf(error: unknown): StoreFailure {
    return mysqlFailure(error);
  }

  async close(): Promise<void> {
    await this.#creating?.catch(() => undefined);
  }

  async #extend(
    key: string,
    token: string,
    fencingToken: bigint,
    ttl: number | null,
    info: Uint8Array | null,
  ): Promise<number | LossReason> {
    const values = [bytes(key), bytes(token), fencingToken.toString(), ttl, info];
    const { lost, remainingMs } = await this.#call("extend", values);
    return lost === null ? Number(remainingMs) : (textOf(lost) as LossReason);
  }

  /** The only row of a procedure. */
  async #call(name: string, values: MysqlValue[]): Promise<Row> {
    const [rows] = await this.#results(name, values);
    return rows?.[0] as Row;
  }

  /** Repeats the call if the server has rolled it back because of a deadlock or a certification failure. */
  async #results(name: string, values: MysqlValue[]): Promise<Row[][]> {
    if (!this.#isChecked) {
      await this.#rejectGalera();
    }
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#prepared(() => this.#database.call(procedureName(name), values));
      } catch (error) {
        if (!isDeadlock(error) || tries >= maxTries) {
          throw error;
        }
      }
    }
  }

  /** @throws {LockError} if several nodes may grant locks, and the difference of their clocks is unknown */
  async #rejectGalera(): Promise<void> {
    const [row] = await this.#database.rows("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'", []);
    if (Number(row?.["Value"] ?? 0) > 0) {
      const difference =
        "the largest difference between the clocks of the nodes, in ms, or 0 if one node grants all locks";
      const message = `MySQL: the server is a node of a Galera cluster. Set the option \`maxClockDifferenceMs\`: ${difference}`;
      throw new LockError(message, { code: "unsupported" });
    }
    this.#isChecked = true;
  }

  /** Creates the schema if the request fails without it. */
  async #prepared<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (!this.#createsSchema || !isMissingSchema(error)) {
        throw error;
      }
    }
    this.#creating ??= this.#database.create(mysqlSchema()).finally(() => {
      this.#creating = undefined;
    });
    await this.#creating;
    return request();
  }

  /** Removes old lock rows in the background. */
  #sweepSometimes(): void {
    if (this.#sweeps.released()) {
      this.#sweep().then(
        (rows) => this.#sweeps.swept(rows),
        () => undefined, // a later sweep removes the rows
      );
    }
  }

  /** @returns the number of rows that were old */
  async #sweep(): Promise<number> {
    const [old = []] = await this.#results("old_keys", []);
    for (const { k } of old) {
      await this.#call("sweep", [k as MysqlValue]);
    }
    return old.length;
  }
}

function micros(ms: number): number {
  return Math.round(ms * 1000);
}

function firstHolder(reply: Row): ReturnType<typeof holderOf> | undefined {
  return reply["info"] === null
    ? undefined
    : holderOf(textOf(reply["kind"]) as HeldKind, { ...reply, fencing: reply["holderFencing"] });
}
