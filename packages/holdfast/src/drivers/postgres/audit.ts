import { maxAuditRecords } from "../../operator/audit.ts";

/** A row of the function `read_audit`. */
export interface AuditRow {
  readonly id: string;
  readonly at: number;
  readonly key: string;
  readonly fencing: string;
  readonly note: string;
}

/** The table of the breaks. The row 0 has the last id, and its row lock gives concurrent breaks an order. */
export const auditTable = `
CREATE TABLE IF NOT EXISTS {schema}.audit (
  id bigint PRIMARY KEY, at double precision NOT NULL, key text NOT NULL, fencing bigint NOT NULL, note text NOT NULL);`;

export const auditFunctions: string = `
-- Writes the record of a break, in the transaction of the break, and removes the oldest records. Returns the id of the record.
CREATE OR REPLACE FUNCTION {schema}.record_break(r jsonb) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE given bigint;
BEGIN
  INSERT INTO {schema}.audit AS last VALUES (0, 0, '', floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint, '')
    ON CONFLICT (id) DO UPDATE
      SET fencing = greatest(last.fencing + 1, floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    RETURNING fencing INTO given;
  INSERT INTO {schema}.audit VALUES
    (given, extract(epoch FROM clock_timestamp())::double precision * 1000, r->>'key', (r->>'fencing')::bigint, r->>'note');
  DELETE FROM {schema}.audit WHERE id > 0
    AND id < (SELECT id FROM {schema}.audit WHERE id > 0 ORDER BY id DESC OFFSET ${maxAuditRecords - 1} LIMIT 1);
  RETURN given;
END $body$;

CREATE OR REPLACE FUNCTION {schema}.read_audit(request text) RETURNS text LANGUAGE sql VOLATILE AS $body$
  SELECT coalesce(json_agg(json_build_object('id', id::text, 'at', at, 'key', key, 'fencing', fencing::text, 'note', note) ORDER BY id),
    '[]')::text FROM {schema}.audit WHERE id > 0 $body$;
`;
