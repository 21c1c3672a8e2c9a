import type { Capabilities, ListQuery } from "../../driver.ts";
import { invalidKey, kindMismatch, limitMismatch, type LossReason } from "../../errors.ts";
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
  StoreListener,
  StoreReply,
} from "../store/lease-store.ts";
import { sharesOf } from "../store/shares.ts";
import { SweepSchedule } from "../store/sweep-schedule.ts";
import type { AuditRow } from "./audit.ts";
import { argumentOf, valuesOf, type PostgresQuery } from "./client.ts";
import { isMissingSchema, postgresFailure } from "./errors.ts";
import type { Notifications } from "./notifications.ts";
import { nodeOf } from "./node.ts";
import { quoted, type ResolvedOptions } from "./options.ts";
import { holderOf, stateOf, type HolderRow, type StateRow } from "./rows.ts";
import { maxSweptRows, type Operation } from "./functions.ts";
import { committedSchema, schemaVersion } from "./schema.ts";
import type { AdvisorySession } from "./session.ts";

/** The connections that the driver opens. */
interface OwnConnections {
  readonly notifications: Notifications | undefined;
  readonly session: AdvisorySession | undefined;
}

const dayMs = 86_400_000;
const sweepEveryMs = 600_000;

/** The leases of one database. Each operation is one statement, which calls a procedure of the schema. */
export class PostgresStore implements LeaseStore {
  readonly capabilities: Capabilities;
  readonly subscribe?: (listener: StoreListener) => () => void;
  readonly #query: PostgresQuery;
  readonly #notifications: Notifications | undefined;
  readonly #session: AdvisorySession | undefined;
  readonly #schema: string;
  readonly #createsSchema: boolean;
  readonly #clock: Clock;
  #listener: StoreListener | undefined;
  #ready: Promise<void> | undefined;
  readonly #sweeps: SweepSchedule;

  constructor(
    query: PostgresQuery,
    { notifications, session }: OwnConnections,
    { schema, createSchema, clock }: Pick<ResolvedOptions, "schema" | "createSchema" | "clock">,
  ) {
    this.#query = query;
    this.#notifications = notifications;
    this.#session = session;
    this.#schema = schema;
    this.#createsSchema = createSchema;
    this.#clock = clock;
    this.#sweeps = new SweepSchedule(clock, sweepEveryMs, maxSweptRows);
    if (notifications) {
      this.subscribe = (listener) => {
        this.#listener = listener;
        return notifications.subscribe(listener);
      };
    }
    this.capabilities = {
      engine: "postgres",
      kinds: ["mutex", "read-write", "semaphore"],
      guarantee: "database",
      waiting: notifications ? "notify" : "poll",
      requeue: false,
      fencingBlocks: false,
      maxTtlMs: dayMs,
      claimMs: dayMs,
    };
  }

  get isNotified(): boolean {
    return this.#notifications?.isArriving === true;
  }

  checkKey(key: string): void {
    if (key.includes("\0")) {
      throw invalidKey(
        `The key ${JSON.stringify(key)} has a NUL character, and PostgreSQL cannot store it`,
        key,
      );
    }
  }

  async acquire({ lockMode, waitMs, ...rest }: StoreAttempt): Promise<StoreReply> {
    if (this.#session?.refusal) {
      throw this.#session.refusal;
    }
    const wait = waitMs === null ? null : Math.min(waitMs, Number.MAX_SAFE_INTEGER);
    const request = { ...rest, ...sharesOf(lockMode), waitMs: wait, channel: this.#notifications?.channel };
    const reply = (await this.#call("acquire", request)) as AcquireRow;
    switch (reply.outcome) {
      case "granted":
        return { outcome: "granted", fencingToken: BigInt(reply.fencing) };
      case "held": {
        const { position, holder, kind } = reply;
        return { outcome: "held", position, holder: holder ? holderOf(kind, holder) : undefined };
      }
      case "queued":
        return { ...reply, remainingMs: reply.remainingMs ?? Infinity };
      case "kind":
        throw kindMismatch(rest.key, reply.present);
      case "limit":
        throw limitMismatch(rest.key, reply.present);
    }
  }

  async extend({ fencingToken, info, ...request }: StoreExtension): Promise<number | LossReason> {
    const fencing = fencingToken.toString();
    const channel = this.#notifications?.channel;
    const session = this.#session?.id;
    const sent = this.#clock.now();
    const extension = { ...request, ...info, fencing, channel, session };
    const remaining = remainingOf(await this.#call("extend", extension));
    if (typeof remaining === "number" && session !== undefined) {
      this.#session?.renewed(request.token, sent + remaining);
    }
    return remaining;
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    return remainingOf(await this.#call("verify", { key, token, fencing: fencingToken?.toString() }));
  }

  async release(key: string, token: string): Promise<boolean> {
    const request = { key, token, channel: this.#notifications?.channel };
    const { held, next } = (await this.#call("release", request)) as { held: boolean; next?: string | null };
    this.#session?.released(token);
    if (typeof next === "string") {
      this.#listener?.wake(next);
    }
    this.#sweepSometimes();
    return held;
  }

  async downgrade(key: string, token: string): Promise<boolean> {
    return ((await this.#call("downgrade", { key, token })) as { held: boolean }).held;
  }

  async setLimit(key: string, limit: number): Promise<void> {
    const { present } = (await this.#call("set_limit", { key, limit })) as { present: string | null };
    if (present !== null) {
      throw kindMismatch(key, present);
    }
  }

  async inspect(key: string): Promise<LockState> {
    return stateOf((await this.#call("inspect", { key })) as StateRow);
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const request = { prefix, after: cursor?.slice(1), limit: limit + 1 };
    const rows = (await this.#call("list", request)) as StateRow[];
    const page = rows.slice(0, limit);
    return { locks: page.map(stateOf), cursor: rows.length > limit ? `>${page.at(-1)?.key}` : null };
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note: BreakNote | undefined,
  ): Promise<BrokenGrant | null> {
    const request = {
      key,
      fencing: fencingToken.toString(),
      reason: reason.replaceAll("\0", "\ufffd"), // a text of PostgreSQL has no NUL character
      note: note && encodeNote(reason, note),
    };
    const { token, auditId } = (await this.#call("break_grant", request)) as BreakRow;
    return token === null ? null : { token, auditId };
  }

  async audit(): Promise<AuditRecord[]> {
    const rows = (await this.#call("read_audit", {})) as AuditRow[];
    return rows.map(({ fencing, ...row }) => recordOf({ ...row, fencingToken: BigInt(fencing) }));
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    const request = { key, fencing: fencingToken.toString() };
    return ((await this.#call("is_current", request)) as { current: boolean }).current;
  }

  async nodes(): Promise<NodeState[]> {
    return [await nodeOf(this.#query, this.#clock, this.#notifications)];
  }

  failureOf(error: unknown): StoreFailure {
    return postgresFailure(error);
  }

  async close(): Promise<void> {
    await this.#ready?.catch(() => undefined);
    this.#session?.close();
  }

  async #call(name: Operation, request: object): Promise<unknown> {
    const ready = (this.#ready ??= this.#prepare());
    try {
      await ready;
    } catch (error) {
      if (this.#ready === ready) {
        this.#ready = undefined;
      }
      throw error;
    }
    const [argument, value] = argumentOf(request);
    const [row] = await this.#query(`CALL ${quoted(this.#schema)}.run_${name}(${argument})`, [value]);
    const [reply] = valuesOf(row);
    if (typeof reply !== "string") {
      const changed = "an option of the client, or a wrapper, changes the rows";
      throw new TypeError(`expected a row with one text from the client, got ${typeof reply}; ${changed}`);
    }
    return JSON.parse(reply);
  }

  /** Creates the schema if it is missing or older, and opens the session. */
  async #prepare(): Promise<void> {
    let version = 0;
    try {
      const [row] = await this.#query(`SELECT ${quoted(this.#schema)}.version()::pg_catalog.text`, []);
      version = Number(valuesOf(row)[0]);
    } catch (error) {
      if (!isMissingSchema(error) || !this.#createsSchema) {
        throw error;
      }
    }
    if (version < schemaVersion) {
      if (!this.#createsSchema) {
        const repair = "run the SQL of postgresSchema(), or allow createSchema";
        throw new TypeError(
          `expected the schema ${this.#schema} to have version ${schemaVersion}, got ${version}: ${repair}`,
        );
      }
      await this.#query(committedSchema(this.#schema), []);
    }
    await this.#session?.start();
  }

  /** Removes old lock rows in the background. */
  #sweepSometimes(): void {
    if (this.#sweeps.released()) {
      this.#call("sweep", {}).then(
        (reply) => this.#sweeps.swept((reply as { removed: number }).removed),
        () => undefined, // a later sweep removes the rows
      );
    }
  }
}

interface BreakRow {
  readonly token: string | null;
  readonly auditId?: string;
}

type AcquireRow =
  | { outcome: "granted"; fencing: string }
  | { outcome: "held"; position: number; holder: HolderRow | null; kind: HeldKind }
  | { outcome: "queued"; ticket: string; position: number; remainingMs: number | null }
  | { outcome: "kind"; present: string }
  | { outcome: "limit"; present: number };

function remainingOf(reply: unknown): number | LossReason {
  const { lost, remainingMs } = reply as { lost?: LossReason; remainingMs: number };
  return lost ?? remainingMs;
}
