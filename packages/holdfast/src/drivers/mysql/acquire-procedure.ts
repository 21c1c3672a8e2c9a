import { now } from "./tables.ts";

export interface Procedure {
  readonly params: string;
  /** Variables besides those that all procedures have. */
  readonly variables?: string;
  readonly body: string;
  readonly reply: string;
}

/** Takes the row lock of a key, and reads the time after it. */
export const lockKey: string = `SELECT kind, capacity, fencing INTO lock_kind, lock_capacity, lock_fencing
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

const readQueue = `SELECT COUNT(*), MAX(ticket), MAX(CASE WHEN token = own THEN ticket END) INTO entries, last_ticket, place
      FROM holdfast_waiters WHERE k = lock_key;`;

const variables = `DECLARE used, given, pin_count, ended, entries, last_ticket, place, ahead, soonest BIGINT DEFAULT NULL;
  DECLARE is_queued BOOL DEFAULT FALSE;
  DECLARE result VARCHAR(16);
  DECLARE present VARCHAR(32);
  DECLARE first_info BLOB;
  DECLARE first_fencing, first_weight, first_end BIGINT;`;

/** Grants the lock, or keeps the request in the queue. A repeat of a granted request extends its grant. */
export const acquire: Procedure = {
  params: `lock_key VARBINARY(512), own VARBINARY(255), new_kind VARCHAR(16), wanted BIGINT, size BIGINT, any_limit BOOL, ttl BIGINT,
  wait_us BIGINT, old_ticket BIGINT, entry_ttl BIGINT, entry_owner BLOB, new_info BLOB`,
  variables,
  body: `${lockKey}
  IF lock_kind IS NULL THEN
    INSERT INTO holdfast_locks VALUES (lock_key, new_kind, size, 0) ON DUPLICATE KEY UPDATE fencing = fencing;
    ${lockKey}
  END IF;
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
    SET ahead = 0, place = old_ticket;
    IF EXISTS (SELECT 1 FROM holdfast_waiters WHERE k = lock_key) THEN
      DELETE FROM holdfast_waiters WHERE k = lock_key AND token <> own AND (deadline <= at_time OR seen_until <= at_time);
      ${readQueue}
      SET is_queued = place IS NOT NULL;
      SET place = COALESCE(place, old_ticket, GREATEST(COALESCE(last_ticket, 0) + 1, at_time));
      SELECT COUNT(*) INTO ahead FROM holdfast_waiters WHERE k = lock_key AND token <> own AND ticket < place;
    ELSE
      SET entries = 0, place = COALESCE(place, at_time);
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
      SET result = 'granted', given = GREATEST(lock_fencing + 1, at_time);
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
      REPLACE INTO holdfast_waiters VALUES (lock_key, own, place, at_time + wait_us, at_time + entry_ttl, entry_owner);
      SELECT MIN(expires_at) - at_time INTO soonest FROM holdfast_holders
        WHERE k = lock_key AND broken IS NULL AND expires_at > at_time;
    ELSE
      SET result = COALESCE(result, 'held');
      DELETE FROM holdfast_waiters WHERE k = lock_key AND token = own;
      SELECT info, fencing, weight, expires_at INTO first_info, first_fencing, first_weight, first_end FROM holdfast_holders
        WHERE k = lock_key AND broken IS NULL AND expires_at > at_time ORDER BY expires_at LIMIT 1;
    END IF;
  END IF;`,
  reply: `result AS outcome, CAST(given AS CHAR) AS fencing, CAST(place AS CHAR) AS ticket, ahead AS position,
    soonest / 1000 AS soonestMs, present, lock_kind AS kind, first_info AS info, CAST(first_fencing AS CHAR) AS holderFencing,
    first_weight AS weight, (first_end - at_time) / 1000 AS remainingMs`,
};
