/** The largest number of lock rows that one sweep removes. */
export const maxSweptRows = 2_000;

/**
 * The functions that change locks. Each has one argument and one result, both JSON, so that versions of clients may differ.
 *
 * Bitmap scans are off in the functions that run most often. A hot key leaves a dead row for each turn. Only an index scan marks the
 * entries of dead rows, so that later scans skip them.
 */
export const functions: string = `
-- Rejects other isolation levels, which would show a function the state before it got the row lock of its key.
CREATE OR REPLACE FUNCTION {schema}.reject_isolation() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'holdfast needs the isolation level "read committed", got "%"', current_setting('transaction_isolation')
    USING ERRCODE = '0A000';
END $body$;

-- Takes the row lock of a key. Returns the kind of its lock; null: the key has no row.
CREATE OR REPLACE FUNCTION {schema}.own_key(k text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE kind_now text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM {schema}.reject_isolation(); END IF;
  SELECT kind INTO kind_now FROM {schema}.locks WHERE key = k FOR UPDATE;
  RETURN kind_now;
END $body$;

CREATE OR REPLACE FUNCTION {schema}.first_waiter(k text, OUT ticket bigint, OUT channel text) LANGUAGE sql VOLATILE AS $body$
  SELECT ticket, channel FROM {schema}.waiters
    WHERE key = k AND deadline > clock_timestamp() AND seen_until > clock_timestamp() ORDER BY ticket LIMIT 1 $body$;

-- Notifies the first waiter, if it listens. A waiter without a channel polls, because a notification locks the whole database.
CREATE OR REPLACE FUNCTION {schema}.wake(k text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE first record;
BEGIN
  SELECT ticket, channel INTO first FROM {schema}.first_waiter(k);
  IF first.channel IS NOT NULL THEN PERFORM pg_notify(first.channel, 'wake ' || first.ticket); END IF;
END $body$;

-- Adds or renews the queue entry of a request. "ahead" is the number of earlier entries.
CREATE OR REPLACE FUNCTION {schema}.enqueue(r jsonb, at_time timestamptz, OUT is_queued boolean, OUT place bigint, OUT ahead bigint)
LANGUAGE plpgsql AS $body$
DECLARE k text := r->>'key'; own text := r->>'token'; last bigint;
BEGIN
  DELETE FROM {schema}.waiters WHERE key = k AND token <> own AND (deadline <= at_time OR seen_until <= at_time);
  SELECT max(ticket) FILTER (WHERE token = own), max(ticket) INTO place, last FROM {schema}.waiters WHERE key = k;
  is_queued := place IS NOT NULL;
  place := coalesce(place, (r->>'ticket')::bigint,
    greatest(coalesce(last, 0) + 1, floor(extract(epoch FROM at_time) * 1000000)::bigint));
  SELECT count(*) INTO ahead FROM {schema}.waiters WHERE key = k AND token <> own AND ticket < place;
END $body$;

-- Grants the lock, or keeps the request in the queue. A repeat of a granted request extends its grant.
CREATE OR REPLACE FUNCTION {schema}.acquire(request text) RETURNS text LANGUAGE plpgsql SET enable_bitmapscan = off AS $body$
DECLARE
  r jsonb := request::jsonb;
  k text := r->>'key';
  own text := r->>'token';
  wanted bigint := r->>'weight';
  size bigint := r->>'capacity';
  wait double precision := r->>'waitMs';
  ttl interval := (r->>'ttlMs')::double precision * interval '1 millisecond';
  lock record;
  at_time timestamptz;
  held record;
  is_queued boolean := false;
  place bigint;
  ahead bigint := 0;
  ended text[] := '{}';
  has_waiters boolean;
  given bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM {schema}.reject_isolation(); END IF;
  -- A grant and an extension must survive a crash of the server, and reach its synchronous standbys. Other changes may be lost, because they end with their TTL.
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  LOOP
    SELECT kind, capacity, fencing INTO lock FROM {schema}.locks WHERE key = k FOR UPDATE;
    EXIT WHEN FOUND;
    given := floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    INSERT INTO {schema}.locks VALUES (k, r->>'kind', size, given) ON CONFLICT DO NOTHING;
    IF FOUND AND wanted <= size THEN
      -- A key that had no row has no holder and no waiter.
      INSERT INTO {schema}.holders
        VALUES (k, own, wanted, given, clock_timestamp() + ttl, r->>'owner', r->>'reason', r->'labels', r->>'channel');
      RETURN json_build_object('outcome', 'granted', 'fencing', given::text);
    END IF;
  END LOOP;
  at_time := clock_timestamp();
  SELECT coalesce(sum(weight), 0) AS used, count(*) AS n, bool_or(broken IS NOT NULL OR expires_at <= at_time) AS has_ended,
      bool_or(session IS NOT NULL) AS is_bound,
      max(fencing) FILTER (WHERE token = own AND broken IS NULL AND expires_at > at_time) AS fencing,
      EXISTS (SELECT FROM {schema}.waiters WHERE key = k) AS has_waiters
    INTO held FROM {schema}.holders WHERE key = k;
  has_waiters := held.has_waiters;
  IF held.is_bound THEN PERFORM {schema}.end_sessions(k); END IF;
  IF held.fencing IS NOT NULL THEN
    UPDATE {schema}.holders SET expires_at = greatest(expires_at, at_time + ttl), ttl_ms = greatest(ttl_ms, (r->>'ttlMs')::double precision)
      WHERE key = k AND token = own;
    RETURN json_build_object('outcome', 'granted', 'fencing', held.fencing::text);
  END IF;

  IF held.has_ended THEN
    -- A grant that has ended stays in force while a transaction holds its row, see assertHeld().
    SELECT coalesce(array_agg(token), '{}') INTO ended FROM (SELECT token FROM {schema}.holders
      WHERE key = k AND (broken IS NOT NULL OR expires_at <= at_time) FOR UPDATE SKIP LOCKED) free;
    DELETE FROM {schema}.holders WHERE key = k AND token = ANY (ended) AND expires_at <= at_time;
    SELECT coalesce(sum(weight), 0) AS used, count(*) AS n INTO held
      FROM {schema}.holders WHERE key = k AND token <> ALL (ended);
  END IF;

  IF has_waiters THEN
    SELECT * INTO is_queued, place, ahead FROM {schema}.enqueue(r, at_time);
    has_waiters := EXISTS (SELECT FROM {schema}.waiters WHERE key = k);
  END IF;

  IF held.n > 0 OR has_waiters THEN
    IF lock.kind <> r->>'kind' THEN
      PERFORM {schema}.leave(k, own);
      RETURN json_build_object('outcome', 'kind', 'present', lock.kind);
    ELSIF lock.capacity <> size THEN
      IF NOT (wanted <= lock.capacity AND (is_queued OR (r->>'anyLimit')::boolean)) THEN
        PERFORM {schema}.leave(k, own);
        RETURN json_build_object('outcome', 'limit', 'present', lock.capacity);
      END IF;
      size := lock.capacity;
    END IF;
  END IF;

  IF ahead = 0 AND held.used + wanted <= size THEN
    given := greatest(lock.fencing + 1, floor(extract(epoch FROM at_time) * 1000000)::bigint);
    UPDATE {schema}.locks SET fencing = given, kind = r->>'kind', capacity = size WHERE key = k;
    INSERT INTO {schema}.holders VALUES (k, own, wanted, given, at_time + ttl, r->>'owner', r->>'reason', r->'labels', r->>'channel', NULL)
      ON CONFLICT (key, token) DO UPDATE SET weight = wanted, fencing = given, expires_at = at_time + ttl, broken = NULL, session = NULL;
    IF is_queued THEN
      DELETE FROM {schema}.waiters WHERE key = k AND token = own;
      IF held.used + wanted < size THEN PERFORM {schema}.wake(k); END IF;
    END IF;
    RETURN json_build_object('outcome', 'granted', 'fencing', given::text);
  END IF;

  PERFORM set_config('synchronous_commit', 'off', true);
  IF wait IS NULL OR wait <= 0 THEN
    IF is_queued THEN PERFORM {schema}.leave(k, own); END IF;
    RETURN json_build_object('outcome', 'held', 'position', ahead, 'holder', {schema}.first_holder(k), 'kind', lock.kind);
  END IF;
  IF held.n = 0 AND NOT has_waiters THEN
    UPDATE {schema}.locks SET kind = r->>'kind', capacity = size WHERE key = k;
  END IF;
  IF NOT has_waiters THEN
    SELECT * INTO is_queued, place, ahead FROM {schema}.enqueue(r, at_time);
  END IF;
  INSERT INTO {schema}.waiters VALUES (k, own, place, at_time + least(wait, 1e12) * interval '1 millisecond',
      at_time + (r->>'entryTtlMs')::double precision * interval '1 millisecond', r->>'owner', r->>'channel')
    ON CONFLICT (key, token) DO UPDATE SET deadline = excluded.deadline, seen_until = excluded.seen_until;
  RETURN json_build_object('outcome', 'queued', 'ticket', place::text, 'position', ahead, 'remainingMs',
    (SELECT min({schema}.left_ms(expires_at, ttl_ms)) FROM {schema}.holders WHERE key = k AND broken IS NULL AND expires_at > at_time));
END $body$;

CREATE OR REPLACE FUNCTION {schema}.leave(k text, own text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM {schema}.waiters WHERE key = k AND token = own;
  IF FOUND THEN PERFORM {schema}.wake(k); END IF;
END $body$;

-- Ends a grant and a queue entry. If a transaction holds the row of the grant, the row stays until that transaction has ended.
-- The reply names the first waiter if that waiter listens to the channel of the request, and otherwise the waiter is notified.
CREATE OR REPLACE FUNCTION {schema}.release(request text) RETURNS text LANGUAGE plpgsql SET enable_bitmapscan = off AS $body$
DECLARE r json := request::json; k text := r->>'key'; own text := r->>'token'; was_held boolean; first record; next text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM {schema}.reject_isolation(); END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM FROM {schema}.locks WHERE key = k FOR UPDATE;
  DELETE FROM {schema}.holders WHERE ctid = (SELECT ctid FROM {schema}.holders WHERE key = k AND token = own FOR UPDATE SKIP LOCKED)
    RETURNING broken IS NULL AND expires_at > clock_timestamp() INTO was_held;
  IF NOT FOUND THEN
    SELECT broken IS NULL AND expires_at > clock_timestamp() INTO was_held FROM {schema}.holders WHERE key = k AND token = own;
    UPDATE {schema}.holders SET expires_at = '-infinity', session = NULL WHERE key = k AND token = own;
  END IF;
  IF EXISTS (SELECT FROM {schema}.waiters WHERE key = k) THEN
    DELETE FROM {schema}.waiters WHERE key = k AND token = own;
    SELECT ticket, channel INTO first FROM {schema}.first_waiter(k);
    IF first.channel = r->>'channel' THEN
      next := first.ticket;
    ELSIF first.channel IS NOT NULL THEN
      PERFORM pg_notify(first.channel, 'wake ' || first.ticket);
    END IF;
  END IF;
  RETURN json_build_object('held', coalesce(was_held, false), 'next', next);
END $body$;

CREATE OR REPLACE FUNCTION {schema}.downgrade(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; k text := r->>'key'; was_held boolean;
BEGIN
  PERFORM {schema}.own_key(k);
  UPDATE {schema}.holders SET weight = 1
    WHERE key = k AND token = r->>'token' AND broken IS NULL AND expires_at > clock_timestamp();
  was_held := FOUND;
  PERFORM {schema}.wake(k);
  RETURN json_build_object('held', was_held);
END $body$;

CREATE OR REPLACE FUNCTION {schema}.set_limit(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; k text := r->>'key'; kind_now text := {schema}.own_key(k);
BEGIN
  IF {schema}.is_held(k) OR {schema}.has_waiters(k) THEN
    IF kind_now <> 'semaphore' THEN RETURN json_build_object('present', kind_now); END IF;
    UPDATE {schema}.locks SET capacity = (r->>'limit')::bigint WHERE key = k;
    PERFORM {schema}.wake(k);
  END IF;
  RETURN json_build_object('present', NULL);
END $body$;

-- Ends the grant with this number. Its row keeps the reason until the TTL has passed, for the holder's next request. With a note, the
-- same transaction writes a record.
CREATE OR REPLACE FUNCTION {schema}.break_grant(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; k text := r->>'key'; grant_row record;
BEGIN
  PERFORM {schema}.own_key(k);
  UPDATE {schema}.holders SET broken = r->>'reason', session = NULL, expires_at = CASE WHEN session IS NULL THEN expires_at
      ELSE clock_timestamp() + ttl_ms * interval '1 millisecond' END
    WHERE key = k AND fencing = (r->>'fencing')::bigint AND broken IS NULL AND expires_at > clock_timestamp()
    RETURNING token, channel INTO grant_row;
  IF NOT FOUND THEN RETURN json_build_object('token', NULL); END IF;
  IF grant_row.channel IS NOT NULL THEN
    PERFORM pg_notify(grant_row.channel, 'broken ' || grant_row.token || ' ' || left(r->>'reason', 1000));
  END IF;
  PERFORM {schema}.wake(k);
  IF r->>'note' IS NULL THEN RETURN json_build_object('token', grant_row.token); END IF;
  RETURN json_build_object('token', grant_row.token, 'auditId', {schema}.record_break(r)::text);
END $body$;

-- Ends the caller's transaction with an error, unless the grant is in force. The row lock keeps the grant until the transaction has
-- ended: it does not conflict with an extension, and all other functions leave a locked row in place.
CREATE OR REPLACE FUNCTION {schema}.assert_held(request text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE r jsonb := request::jsonb;
BEGIN
  PERFORM FROM {schema}.holders WHERE key = r->>'key' AND fencing = (r->>'fencing')::bigint AND broken IS NULL
    AND expires_at > clock_timestamp() FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'holdfast: the lease of "%" with the fencing token % is lost', r->>'key', r->>'fencing' USING ERRCODE = 'HF001';
  END IF;
  RETURN '{}';
END $body$;

-- Removes some of the lock rows that were not used for an hour, and returns their number.
CREATE OR REPLACE FUNCTION {schema}.sweep(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE idle text[]; removed integer;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM {schema}.end_sessions(key) FROM (SELECT DISTINCT key FROM {schema}.holders WHERE session IS NOT NULL) bound;
  SELECT array_agg(key) INTO idle FROM (SELECT key FROM {schema}.locks l
    WHERE fencing < floor(extract(epoch FROM clock_timestamp() - interval '1 hour') * 1000000)
      AND NOT EXISTS (SELECT FROM {schema}.holders h WHERE h.key = l.key AND h.expires_at > clock_timestamp())
    LIMIT ${maxSweptRows} FOR UPDATE SKIP LOCKED) old;
  DELETE FROM {schema}.holders h USING (SELECT key, token FROM {schema}.holders WHERE key = ANY (idle)
    AND expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED) ended WHERE h.key = ended.key AND h.token = ended.token;
  DELETE FROM {schema}.waiters WHERE key = ANY (idle) AND seen_until <= clock_timestamp();
  DELETE FROM {schema}.locks l WHERE key = ANY (idle)
    AND NOT EXISTS (SELECT FROM {schema}.holders h WHERE h.key = l.key)
    AND NOT EXISTS (SELECT FROM {schema}.waiters w WHERE w.key = l.key);
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN json_build_object('removed', removed);
END $body$;
`;

/** The operations of the driver. Each is a function of this name, with one argument and one result, both JSON. */
const operations = [
  "acquire",
  "extend",
  "verify",
  "release",
  "downgrade",
  "set_limit",
  "inspect",
  "list",
  "break_grant",
  "read_audit",
  "is_current",
  "sweep",
] as const;

export type Operation = (typeof operations)[number];

/**
 * The procedures that the driver calls, one for each function. The server refuses the COMMIT inside of a transaction block. So a call on a
 * connection that a program left with an open transaction changes and reads nothing: a ROLLBACK would undo the grant after the reply, and
 * a snapshot would show an earlier state.
 *
 * The new transaction does not depend on settings that a program left: another search path may replace the clock, and fewer digits may
 * round the remaining time up.
 */
export const procedures: string = operations
  .map(
    (name) => `
CREATE OR REPLACE PROCEDURE {schema}.run_${name}(INOUT reply text) LANGUAGE plpgsql AS $body$
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  SET LOCAL search_path = pg_catalog, pg_temp;
  SET LOCAL extra_float_digits = 1;
  SET LOCAL client_encoding = 'UTF8';
  reply := {schema}.${name}(reply);
END $body$;
`,
  )
  .join("");
