/**
 * The functions for leases that are bound to a session of the database. `expires_at` of a bound grant is "infinity". The session holds
 * the advisory lock of its number. A renewal holds the advisory lock of the next number, shared, until its transaction has ended. The end
 * of a session holds that lock alone. So each renewal is either before the end, and its TTL counts from an earlier time, or sees the end.
 */
export const sessionFunctions = `
-- Starts the TTL of the grants of a key whose sessions have ended.
CREATE OR REPLACE FUNCTION {schema}.end_sessions(k text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE ended bigint;
BEGIN
  IF pg_is_in_recovery() THEN RETURN; END IF;
  FOR ended IN SELECT session FROM {schema}.holders
    WHERE key = k AND session IS NOT NULL AND pg_try_advisory_xact_lock_shared(session) LOOP
    PERFORM pg_advisory_xact_lock(ended + 1);
    UPDATE {schema}.holders SET session = NULL, expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond'
      WHERE key = k AND session = ended;
  END LOOP;
END $body$;

-- Starts the TTL of the grants of a session that its client no longer renews.
CREATE OR REPLACE FUNCTION {schema}.keep_session(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; own bigint := r->>'session'; ended text[];
BEGIN
  SELECT array_agg(token) INTO ended FROM {schema}.holders WHERE session = own
    AND token <> ALL (ARRAY(SELECT jsonb_array_elements_text(r->'renewed')));
  IF ended IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(own + 1);
    UPDATE {schema}.holders SET session = NULL, expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond'
      WHERE session = own AND token = ANY (ended);
  END IF;
  RETURN '{}';
END $body$;

-- Extends a grant. Where the grant is bound to the client's session already, nothing is written.
CREATE OR REPLACE FUNCTION {schema}.extend(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; own bigint := r->>'session'; ttl double precision := r->>'ttlMs'; remaining double precision;
BEGIN
  IF own IS NOT NULL THEN
    IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM {schema}.reject_isolation(); END IF;
    PERFORM pg_advisory_xact_lock_shared(own + 1);
    PERFORM FROM {schema}.holders WHERE key = r->>'key' AND token = r->>'token' AND fencing <= (r->>'fencing')::bigint
      AND broken IS NULL AND session = own AND ttl_ms >= ttl;
    IF FOUND AND r->>'owner' IS NULL THEN RETURN json_build_object('remainingMs', ttl); END IF;
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  UPDATE {schema}.holders SET
      session = own,
      ttl_ms = greatest(ttl, {schema}.left_ms(expires_at, ttl_ms)),
      expires_at = CASE WHEN own IS NOT NULL THEN 'infinity'
        WHEN session IS NULL THEN greatest(expires_at, clock_timestamp() + ttl * interval '1 millisecond')
        ELSE clock_timestamp() + greatest(ttl, ttl_ms) * interval '1 millisecond' END,
      owner = coalesce(r->>'owner', owner),
      reason = CASE WHEN r->>'owner' IS NULL THEN reason ELSE r->>'reason' END,
      labels = CASE WHEN r->>'owner' IS NULL THEN labels ELSE r->'labels' END,
      channel = r->>'channel'
    WHERE key = r->>'key' AND token = r->>'token' AND fencing <= (r->>'fencing')::bigint AND broken IS NULL
      AND expires_at > clock_timestamp()
    RETURNING {schema}.left_ms(expires_at, ttl_ms) INTO remaining;
  IF FOUND THEN RETURN json_build_object('remainingMs', remaining); END IF;
  RETURN json_build_object('lost', {schema}.loss_of(r->>'key', r->>'token'));
END $body$;

CREATE OR REPLACE FUNCTION {schema}.verify(request text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE r jsonb := request::jsonb; bound bigint; bound_now bigint; remaining double precision;
BEGIN
  LOOP
    SELECT session INTO bound FROM {schema}.holders WHERE key = r->>'key' AND token = r->>'token';
    IF bound IS NOT NULL THEN PERFORM pg_advisory_xact_lock_shared(bound + 1); END IF;
    SELECT {schema}.left_ms(expires_at, ttl_ms), session INTO remaining, bound_now FROM {schema}.holders
      WHERE key = r->>'key' AND token = r->>'token' AND broken IS NULL AND expires_at > clock_timestamp()
        AND (r->>'fencing' IS NULL OR fencing <= (r->>'fencing')::bigint);
    EXIT WHEN bound_now IS NULL OR bound_now = bound;
  END LOOP;
  IF remaining IS NOT NULL THEN RETURN json_build_object('remainingMs', remaining); END IF;
  RETURN json_build_object('lost', {schema}.loss_of(r->>'key', r->>'token'));
END $body$;
`;
