import { auditFunctions, auditTable } from "./audit.ts";
import { functions, procedures } from "./functions.ts";
import { checkSchema, quoted } from "./options.ts";
import { sessionFunctions } from "./session-functions.ts";
import { views } from "./views.ts";

/** The version of the functions. A client installs its schema where the version is lower. */
export const schemaVersion = 8;

/**
 * The schema of the locks: four tables, and one function and one procedure for each operation. The statement may be repeated, and several clients may
 * run it at once. Each function that changes a lock takes the row lock of its key first. Therefore operations on one key have an order.
 *
 * The lock row keeps the last fencing token of its key. A row that was not used for an hour is removed. The key then continues from the
 * server's time in µs. That time is larger than every earlier token, unless the server's clock was set back by more than an hour.
 * @param schema the option `schema` of the driver
 * @returns one SQL statement
 */
export function postgresSchema(schema = "holdfast"): string {
  return statement.replaceAll("{schema}", quoted(checkSchema(schema)));
}

/** The statement as the driver runs it. The server refuses the COMMIT inside of a transaction, which could be rolled back. */
export function committedSchema(schema: string): string {
  return postgresSchema(schema).replace(
    "BEGIN",
    "BEGIN COMMIT; SET LOCAL search_path = pg_catalog, pg_temp;",
  );
}

const statement = `DO $holdfast$ BEGIN
PERFORM pg_advisory_xact_lock(7239462810445);
CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {schema}.locks (
  key text COLLATE "C" PRIMARY KEY, kind text NOT NULL, capacity bigint NOT NULL, fencing bigint NOT NULL) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.holders (
  key text COLLATE "C", token text COLLATE "C", weight bigint NOT NULL, fencing bigint NOT NULL, expires_at timestamptz NOT NULL,
  owner text NOT NULL, reason text, labels jsonb, channel text, broken text, PRIMARY KEY (key, token)) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.waiters (
  key text COLLATE "C", token text COLLATE "C", ticket bigint NOT NULL, deadline timestamptz NOT NULL, seen_until timestamptz NOT NULL,
  owner text NOT NULL, channel text, PRIMARY KEY (key, token)) WITH (fillfactor = 50);
${auditTable}

ALTER TABLE {schema}.holders ADD COLUMN IF NOT EXISTS session bigint, ADD COLUMN IF NOT EXISTS ttl_ms double precision;
CREATE INDEX IF NOT EXISTS holders_session ON {schema}.holders (session) WHERE session IS NOT NULL;

${sessionFunctions}
${auditFunctions}
${views}
${functions}
${procedures}
CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql IMMUTABLE AS $body$ SELECT ${schemaVersion} $body$;
END $holdfast$`;
