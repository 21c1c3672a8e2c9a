import { now } from "./tables.ts";

export interface Procedure {
  readonly params: string;
  /** Variables besides those that all procedures have. */
  readonly variables?: string;
  readonly body: string;
  /** The condition that holds after the COMMIT of the body. A body with SKIP LOCKED needs one, see `procedureStatements`. */
  readonly written?: string;
  /** The columns of the reply; undefined: the body replies. */
  readonly reply?: string;
}

/**
 * Takes the row lock of a key, and reads the time after it. A procedure has the rights of its creator, for whom `read_only` may not count.
 * But a primary that was replaced and made read-only must not grant anything.
 */
export const lockKey: string = `IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'The server is read-only';
  END IF;
  SELECT kind, capacity, fencing INTO lock_kind, lock_capacity, lock_fencing
    FROM holdfast_locks WHERE k = lock_key FOR UPDATE;
  SET at_time = ${now};`;

/**
 * Removes the pins of grants that have ended. A pin that a transaction has locked stays, and so does its claim to the key, see
 * assertHeld(). Each pin is locked by its whole primary key, because a locking scan may also lock the next pin, of another
 * key. A request for that key would then leave its pin in place.
 */
export const unpin = `SET pin = -1;
  pins: LOOP
    SET free_pin = NULL;
    SET pin = (SELECT MIN(p.fencing) FROM holdfast_pins p WHERE p.k = lock_key AND p.fencing > pin AND NOT EXISTS
      (SELECT 1 FROM holdfast_holders h WHERE h.k = p.k AND h.token = p.token AND h.fencing = p.fencing AND h.broken IS NULL
        AND h.expires_at > at_time));
    IF pin IS NULL THEN LEAVE pins; END IF;
    SELECT fencing INTO free_pin FROM holdfast_pins WHERE k = lock_key AND fencing = pin FOR UPDATE SKIP LOCKED;
    IF free_pin IS NOT NULL THEN DELETE FROM holdfast_pins WHERE k = lock_key AND fencing = free_pin; END IF;
  END LOOP;`;

const readPins = `SELECT COUNT(*), COALESCE(SUM(COALESCE(h.weight, p.weight)), 0), MAX(CASE WHEN p.token = own THEN h.fencing END), SUM(h.k IS NULL)
    INTO pin_count, used, live, ended
    FROM holdfast_pins p LEFT JOIN holdfast_holders h ON h.k = p.k AND h.token = p.token AND h.fencing = p.fencing
      AND h.broken IS NULL AND h.expires_at > at_time
    WHERE p.k = lock_key;`;

/** The weight of the grants in force, and the time until the first of them expires. */
const readInForce = `SELECT COALESCE(SUM(weight), 0), MIN(expires_at) - at_time INTO used, soonest FROM holdfast_holders
      WHERE k = lock_key AND broken IS NULL AND expires_at > at_time;`;

const readQueue = `SELECT COUNT(*), MAX(ticket), MAX(CASE WHEN token = own THEN ticket END), MAX(CASE WHEN token = own THEN seen_until END),
      COALESCE(SUM(deadline <= at_time OR seen_until <= at_time), 0) INTO entries, last_ticket, place, seen, dead
      FROM holdfast_waiters WHERE k = lock_key;`;

const variables = `DECLARE used, given, pin_count, ended, entries, last_ticket, place, seen, dead, ahead, soonest BIGINT;
  DECLARE is_queued BOOL DEFAULT FALSE;
  DECLARE result VARCHAR(16);
  DECLARE present VARCHAR(32);
  DECLARE first_info BLOB;
  DECLARE first_fencing, first_weight, first_end BIGINT;`;

/**
 * A poll of a waiter that cannot be granted yet. It takes no row lock and writes nothing, so that waiters do not delay the holder.
 * Its entry still has three quarters of its time. The limit of a semaphore may change, so its waiters take the row lock.
 */
const poll = `IF old_ticket IS NOT NULL AND wait_us > 0 AND new_kind <> 'semaphore' THEN
    SET at_time = ${now};
    SELECT w.ticket, (SELECT COUNT(*) FROM holdfast_waiters o WHERE o.k = lock_key AND o.ticket < w.ticket AND o.token <> own
        AND o.deadline > at_time AND o.seen_until > at_time) INTO place, ahead
      FROM holdfast_waiters w WHERE w.k = lock_key AND w.token = own AND w.seen_until > at_time + entry_ttl * 3 DIV 4;
    IF place IS NOT NULL THEN
      ${readInForce}
      IF ahead > 0 OR used + wanted > size THEN
        SET result = 'queued';
      END IF;
    END IF;
  END IF;`;

const grant = `SET result = 'granted', given = GREATEST(COALESCE(lock_fencing, 0) + 1, at_time);`;

/** Grants the lock, or keeps the request in the queue. A repeat of a granted request extends its grant. */
export const acquire: Procedure = {
  params: `lock_key VARBINARY(512), own VARBINARY(255), new_kind VARCHAR(16), wanted BIGINT, size BIGINT, any_limit BOOL, ttl BIGINT,
  wait_us BIGINT, old_ticket BIGINT, entry_ttl BIGINT, entry_owner BLOB, new_info BLOB`,
  variables,
  body: `${poll}
  IF result IS NULL THEN
    ${lockKey}
    IF lock_kind IS NULL THEN
      ${grant}
      -- The count is 1 for a new row, and 2 for a changed one. For an unchanged row it depends on the flags of the client.
      INSERT INTO holdfast_locks VALUES (lock_key, new_kind, size, given) ON DUPLICATE KEY UPDATE fencing = fencing + 1;
      IF ROW_COUNT() = 1 AND wanted <= size THEN
        -- A key that had no row has no holder, no pin and no waiter.
        INSERT INTO holdfast_holders VALUES (lock_key, own, wanted, given, at_time + ttl, new_info, NULL);
        INSERT INTO holdfast_pins VALUES (lock_key, given, own, wanted);
      ELSE
        SET result = NULL, given = NULL;
        ${lockKey}
      END IF;
    END IF;
  END IF;
  IF result IS NULL THEN
  ${readPins}
  IF live IS NOT NULL THEN
    UPDATE holdfast_holders SET expires_at = GREATEST(expires_at, at_time + ttl) WHERE k = lock_key AND token = own;
    SET result = 'granted', given = live;
  ELSE
    IF ended > 0 THEN
      ${unpin}
      DELETE FROM holdfast_holders WHERE k = lock_key AND expires_at <= at_time;
      ${readPins}
    END IF;
    ${readQueue}
    IF dead > 0 THEN
      DELETE FROM holdfast_waiters WHERE k = lock_key AND token <> own AND (deadline <= at_time OR seen_until <= at_time);
      ${readQueue}
    END IF;
    SET is_queued = place IS NOT NULL, ahead = 0;
    SET place = COALESCE(place, old_ticket, GREATEST(COALESCE(last_ticket, 0) + 1, at_time));
    IF entries > 0 THEN
      SELECT COUNT(*) INTO ahead FROM holdfast_waiters WHERE k = lock_key AND token <> own AND ticket < place;
    END IF;
    IF pin_count > 0 OR entries > 0 THEN
      IF lock_kind <> new_kind THEN
        SET result = 'kind', present = lock_kind;
      ELSEIF lock_capacity <> size AND NOT (wanted <= lock_capacity AND (is_queued OR any_limit)) THEN
        SET result = 'limit', present = lock_capacity;
      ELSE
        SET size = lock_capacity;
      END IF;
    END IF;

    IF result IS NULL AND ahead = 0 AND used + wanted <= size THEN
      ${grant}
      UPDATE holdfast_locks SET fencing = given, kind = new_kind, capacity = size WHERE k = lock_key;
      REPLACE INTO holdfast_holders VALUES (lock_key, own, wanted, given, at_time + ttl, new_info, NULL);
      INSERT INTO holdfast_pins VALUES (lock_key, given, own, wanted);
      IF is_queued THEN
        DELETE FROM holdfast_waiters WHERE k = lock_key AND token = own;
      END IF;
    ELSEIF result IS NULL AND wait_us > 0 THEN
      SET result = 'queued';
      IF pin_count = 0 AND entries = 0 THEN
        UPDATE holdfast_locks SET kind = new_kind, capacity = size WHERE k = lock_key;
      END IF;
      IF NOT is_queued OR seen <= at_time + entry_ttl * 3 DIV 4 THEN
        REPLACE INTO holdfast_waiters VALUES (lock_key, own, place, at_time + wait_us, at_time + entry_ttl, entry_owner);
      END IF;
      ${readInForce}
    ELSE
      SET result = COALESCE(result, 'held');
      IF is_queued THEN
        DELETE FROM holdfast_waiters WHERE k = lock_key AND token = own;
      END IF;
      SELECT info, fencing, weight, expires_at INTO first_info, first_fencing, first_weight, first_end FROM holdfast_holders
        WHERE k = lock_key AND broken IS NULL AND expires_at > at_time ORDER BY expires_at LIMIT 1;
    END IF;
  END IF;
  END IF;`,
  written: `given IS NULL OR EXISTS (SELECT 1 FROM holdfast_holders
      WHERE k = lock_key AND token = own AND fencing = given AND expires_at >= at_time + ttl)`,
  reply: `result AS outcome, CAST(given AS CHAR) AS fencing, CAST(place AS CHAR) AS ticket, ahead AS position,
    soonest / 1000 AS soonestMs, present, lock_kind AS kind, first_info AS info, CAST(first_fencing AS CHAR) AS holderFencing,
    first_weight AS weight, (first_end - at_time) / 1000 AS remainingMs`,
};
