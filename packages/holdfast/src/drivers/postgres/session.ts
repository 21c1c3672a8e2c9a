import { LockError } from "../../errors.ts";
import { backoffMs } from "../../runtime/random.ts";
import { pause, withTimeout } from "../../runtime/timeout.ts";
import type { PostgresQuery } from "./client.ts";
import { quoted, type ResolvedOptions } from "./options.ts";

/** The server ends a session without a statement for this time, so that a frozen client keeps no lock. */
const idleTimeoutMs = 5_000;
const keepEveryMs = 1_000;
const oldestVersion = 140_000;
const poolerProbes = 3;
const openWithinMs = 10_000;

interface SessionClient {
  connect(): Promise<unknown>;
  query(sql: string, params: string[]): Promise<{ readonly rows: object[] }>;
  on(event: "error" | "end", listener: () => void): unknown;
  end(): Promise<void>;
}

interface PgPool {
  readonly options: object;
  readonly Client: new (options: object) => SessionClient;
}

interface OpenSession {
  readonly id: string;
  readonly client: SessionClient;
  readonly backend: number;
  readonly ended: AbortController;
}

type Options = Pick<ResolvedOptions, "schema" | "commandTimeoutMs" | "clock" | "random">;

/**
 * One session of the database, which holds an advisory lock. A lease that is bound to the session needs no write at its renewal. The TTL
 * of the lease starts when the session ends, or when the client no longer renews the lease. After a failure another session is opened.
 */
export class AdvisorySession {
  /** The reason why the driver must not be used; undefined: there is none. */
  refusal: LockError | undefined;
  readonly #pool: PgPool;
  readonly #query: PostgresQuery;
  readonly #options: Options;
  readonly #closed = new AbortController();
  /** The tokens of bound leases, with the end of each lease if it is not renewed. */
  readonly #renewed = new Map<string, number>();
  #open: OpenSession | undefined;

  /** @throws {TypeError} if the client cannot open a session of its own */
  constructor(client: unknown, query: PostgresQuery, options: Options) {
    const pool = client as Partial<PgPool>;
    if (typeof pool.Client !== "function" || typeof pool.options !== "object") {
      throw new TypeError('Expected `mode: "advisory"` to be used with a Pool of pg');
    }
    this.#pool = pool as PgPool;
    this.#query = query;
    this.#options = options;
  }

  /** The number of the session, to which leases can be bound; undefined: no session is open. */
  get id(): string | undefined {
    return this.#open?.id;
  }

  /** A lease was bound to the session, or renewed. @param until on the scale of `clock.now()` */
  renewed(token: string, until: number): void {
    this.#renewed.set(token, until);
  }

  released(token: string): void {
    this.#renewed.delete(token);
  }

  /** Opens the first session. Later ones are opened in the background. @throws {LockError} if a pooler is between */
  async start(): Promise<void> {
    await this.#connect();
    void this.#run();
  }

  close(): void {
    this.#closed.abort();
    this.#end();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    for (let failures = 0; !this.#closed.signal.aborted && this.refusal === undefined; failures += 1) {
      try {
        await (this.#open ? this.#keep(this.#open) : this.#connect());
        failures = 0;
      } catch (error) {
        this.#end();
        this.refusal = error instanceof LockError ? error : undefined;
        await pause(clock, backoffMs(random, failures), false, this.#closed.signal);
      }
    }
  }

  /** Keeps the session from its timeout. Rejects when the session has ended. */
  async #keep(session: OpenSession): Promise<void> {
    const { signal } = session.ended;
    await pause(this.#options.clock, keepEveryMs, false, signal);
    if (signal.aborted || !(await this.#isKept(session))) {
      throw new Error("The session has ended");
    }
  }

  async #isKept({ id, client, backend }: OpenSession): Promise<boolean> {
    const { clock, commandTimeoutMs, schema } = this.#options;
    const now = clock.now();
    for (const [token, until] of this.#renewed) {
      if (until <= now) {
        this.#renewed.delete(token);
      }
    }
    const sql = `SELECT pg_backend_pid() AS backend, ${quoted(schema)}.keep_session($1)`;
    const request = JSON.stringify({ session: id, renewed: Array.from(this.#renewed.keys()) });
    const reply = await withTimeout(clock, commandTimeoutMs, client.query(sql, [request]));
    const [row] = (reply?.rows ?? []) as { backend: unknown }[];
    if (row && Number(row.backend) !== backend) {
      throw poolerError();
    }
    return row !== undefined;
  }

  async #connect(): Promise<void> {
    const client = new this.#pool.Client(this.#pool.options);
    try {
      const opened = await withTimeout(this.#options.clock, openWithinMs, this.#prepare(client));
      if (opened === undefined) {
        throw new Error(`No session was opened within ${openWithinMs} ms`);
      }
      this.#open = opened;
    } catch (error) {
      close(client);
      throw error;
    }
    if (this.#closed.signal.aborted) {
      this.#end();
    }
  }

  async #prepare(client: SessionClient): Promise<OpenSession> {
    const ended = new AbortController();
    client.on("end", () => ended.abort());
    client.on("error", () => ended.abort());
    await client.connect();
    const backend = await this.#rejectUnsuitable(client);
    const id = String(2n * BigInt(`0x${this.#options.random.id().slice(0, 15)}`));
    const sql = `SELECT set_config('idle_session_timeout', $1, false), set_config('search_path', 'pg_catalog, pg_temp', false),
      set_config('default_transaction_isolation', 'read committed', false),
      set_config('default_transaction_read_only', 'off', false), pg_advisory_lock($2::bigint)`;
    await client.query(sql, [String(idleTimeoutMs), id]);
    const session = { id, client, backend, ended };
    if (!(await this.#isKept(session))) {
      throw new Error("The session did not reply");
    }
    return session;
  }

  /** Rejects servers without `idle_session_timeout`, and poolers that share one server connection between clients. @returns the backend */
  async #rejectUnsuitable(client: SessionClient): Promise<number> {
    const query: PostgresQuery = async (sql, params) => (await client.query(sql, params)).rows;
    const { backend, version } = await backendOf(query);
    if (version < oldestVersion) {
      throw unsupported("needs PostgreSQL 14, whose sessions can end when they are idle");
    }
    for (let probe = 0; probe < poolerProbes; probe += 1) {
      const other = await backendOf(this.#query);
      const again = await backendOf(query);
      if (other.backend === backend || again.backend !== backend) {
        throw poolerError();
      }
    }
    return backend;
  }

  #end(): void {
    if (this.#open) {
      this.#open.ended.abort();
      close(this.#open.client);
      this.#open = undefined;
    }
  }
}

async function backendOf(query: PostgresQuery): Promise<{ backend: number; version: number }> {
  const sql = "SELECT pg_backend_pid() AS backend, current_setting('server_version_num')::integer AS version";
  const [row] = await query(sql, []);
  const { backend, version } = row as { backend: unknown; version: unknown };
  return { backend: Number(backend), version: Number(version) }; // texts from a pool, see queryOf()
}

function close(client: SessionClient): void {
  client.end().catch(() => undefined);
}

function poolerError(): LockError {
  return unsupported(
    'needs a session of its own, but a pooler in transaction mode is between. Connect to the server, or use `mode: "lease"`',
  );
}

function unsupported(reason: string): LockError {
  return new LockError(`PostgreSQL: \`mode: "advisory"\` ${reason}`, { code: "unsupported" });
}
