/** The functions that read locks, without a row lock. */
export const views = `
CREATE OR REPLACE FUNCTION {schema}.ms_until(moment timestamptz) RETURNS double precision LANGUAGE sql VOLATILE AS
  $body$ SELECT extract(epoch FROM moment - clock_timestamp())::double precision * 1000 $body$;

-- The remaining TTL of a grant, ms. A bound grant has its whole TTL left, because the TTL starts at the end of the session.
CREATE OR REPLACE FUNCTION {schema}.left_ms(expires_at timestamptz, ttl_ms double precision) RETURNS double precision
LANGUAGE sql VOLATILE AS
  $body$ SELECT CASE WHEN isfinite(expires_at) THEN {schema}.ms_until(expires_at) ELSE ttl_ms END $body$;

CREATE OR REPLACE FUNCTION {schema}.is_held(k text) RETURNS boolean LANGUAGE sql VOLATILE AS $body$
  SELECT EXISTS (SELECT FROM {schema}.holders WHERE key = k AND broken IS NULL AND expires_at > clock_timestamp()) $body$;

CREATE OR REPLACE FUNCTION {schema}.has_waiters(k text) RETURNS boolean LANGUAGE sql VOLATILE AS $body$
  SELECT EXISTS (SELECT FROM {schema}.waiters WHERE key = k AND deadline > clock_timestamp() AND seen_until > clock_timestamp()) $body$;

-- Why a token has no grant in force.
CREATE OR REPLACE FUNCTION {schema}.loss_of(k text, own text) RETURNS text LANGUAGE sql VOLATILE AS $body$
  SELECT CASE
    WHEN EXISTS (SELECT FROM {schema}.holders WHERE key = k AND token = own AND broken IS NOT NULL) THEN 'broken'
    WHEN EXISTS (SELECT FROM {schema}.holders h JOIN {schema}.locks l USING (key) WHERE key = k AND l.kind = 'mutex'
      AND token <> own AND broken IS NULL AND expires_at > clock_timestamp()) THEN 'stolen'
    ELSE 'expired' END $body$;

CREATE OR REPLACE FUNCTION {schema}.is_current(request text) RETURNS text LANGUAGE sql VOLATILE AS $body$
  SELECT json_build_object('current', EXISTS (SELECT FROM {schema}.holders WHERE key = request::json->>'key'
    AND fencing = (request::json->>'fencing')::bigint AND broken IS NULL AND expires_at > clock_timestamp()))::text $body$;

CREATE OR REPLACE FUNCTION {schema}.holder_json(h {schema}.holders) RETURNS json LANGUAGE sql VOLATILE AS $body$
  SELECT json_build_object('owner', h.owner, 'reason', h.reason, 'labels', h.labels, 'fencing', h.fencing::text,
    'weight', h.weight, 'remainingMs', {schema}.left_ms(h.expires_at, h.ttl_ms),
    'now', extract(epoch FROM clock_timestamp())::double precision * 1000) $body$;

CREATE OR REPLACE FUNCTION {schema}.first_holder(k text) RETURNS json LANGUAGE sql VOLATILE AS $body$
  SELECT {schema}.holder_json(h) FROM {schema}.holders h WHERE key = k AND broken IS NULL AND expires_at > clock_timestamp()
    ORDER BY expires_at LIMIT 1 $body$;

-- The holders, the first 100 waiters and the number of waiters of one key.
CREATE OR REPLACE FUNCTION {schema}.state_of(k text) RETURNS text LANGUAGE sql VOLATILE AS $body$
  SELECT {schema}.end_sessions(k);
  SELECT json_build_object('key', k,
    'kind', (SELECT kind FROM {schema}.locks WHERE key = k),
    'capacity', (SELECT capacity FROM {schema}.locks WHERE key = k),
    'holders', (SELECT json_agg({schema}.holder_json(h) ORDER BY expires_at)
      FROM {schema}.holders h WHERE key = k AND broken IS NULL AND expires_at > clock_timestamp()),
    'waiters', waiters, 'tickets', tickets,
    'waiterCount', (SELECT count(*) FROM {schema}.waiters
      WHERE key = k AND deadline > clock_timestamp() AND seen_until > clock_timestamp()),
    'now', extract(epoch FROM clock_timestamp())::double precision * 1000)::text
  FROM (SELECT json_agg(owner ORDER BY ticket) AS waiters, json_agg(ticket::text ORDER BY ticket) AS tickets
    FROM (SELECT owner, ticket FROM {schema}.waiters
      WHERE key = k AND deadline > clock_timestamp() AND seen_until > clock_timestamp() ORDER BY ticket LIMIT 100) first) queue $body$;

CREATE OR REPLACE FUNCTION {schema}.inspect(request text) RETURNS text LANGUAGE sql VOLATILE AS
  $body$ SELECT {schema}.state_of(request::json->>'key') $body$;

CREATE OR REPLACE FUNCTION {schema}.list(request text) RETURNS text LANGUAGE sql VOLATILE AS $body$
  SELECT coalesce(json_agg({schema}.state_of(key)::json ORDER BY key), '[]')::text FROM (
    SELECT DISTINCT key FROM {schema}.holders
    WHERE key >= greatest(request::json->>'prefix', coalesce(request::json->>'after', '') COLLATE "C")
      AND starts_with(key, request::json->>'prefix') AND key IS DISTINCT FROM request::json->>'after'
      AND broken IS NULL AND expires_at > clock_timestamp()
    ORDER BY key LIMIT (request::json->>'limit')::integer) page $body$;
`;
