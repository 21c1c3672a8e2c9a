import { maxAuditRecords } from "../../operator/audit.ts";
import { acquire, lockKey, unpin, type Procedure } from "./acquire-procedure.ts";
import { now } from "./tables.ts";

/** Why a token has no grant in force. */
const loss = `CASE
    WHEN EXISTS (SELECT 1 FROM holdfast_holders WHERE k = lock_key AND token = own AND broken IS NOT NULL) THEN 'broken'
    WHEN EXISTS (SELECT 1 FROM holdfast_holders h JOIN holdfast_locks l ON l.k = h.k WHERE h.k = lock_key AND l.kind = 'mutex'
      AND h.token <> own AND h.broken IS NULL AND h.expires_at > at_time) THEN 'stolen'
    ELSE 'expired' END`;

const findOwn = `SELECT fencing, expires_at INTO live, ends_at FROM holdfast_holders
    WHERE k = lock_key AND token = own AND broken IS NULL AND expires_at > at_time;`;

const recordBreak = `INSERT INTO holdfast_audit VALUES (0, 0, '', at_time, '')
      ON DUPLICATE KEY UPDATE fencing = GREATEST(fencing + 1, at_time);
    SELECT fencing, ${now} INTO audit_id, at_time FROM holdfast_audit WHERE id = 0;
    INSERT INTO holdfast_audit VALUES (audit_id, at_time, lock_key, given, new_note);
    SET oldest = (SELECT id FROM holdfast_audit WHERE id > 0 ORDER BY id DESC LIMIT 1 OFFSET ${maxAuditRecords - 1});
    DELETE FROM holdfast_audit WHERE id > 0 AND id < oldest;`;

const inForce = "broken IS NULL AND expires_at > at_time";
const isWaiting = "deadline > at_time AND seen_until > at_time";
const shownWaiters = 100;
export const maxSweptRows = 100;

const keyAndToken = "lock_key VARBINARY(512), own VARBINARY(255)";

const procedures: Readonly<Record<string, Procedure>> = {
  acquire,

  // Without a TTL the grant is only read.
  extend: {
    params: `${keyAndToken}, given BIGINT, ttl BIGINT, new_info BLOB`,
    variables: "DECLARE lost VARCHAR(16);",
    body: `${lockKey} ${findOwn}
  IF live IS NULL OR live > given THEN
    SET lost = ${loss};
  ELSEIF ttl IS NOT NULL THEN
    SET ends_at = GREATEST(ends_at, at_time + ttl);
    UPDATE holdfast_holders SET expires_at = ends_at, info = COALESCE(new_info, info) WHERE k = lock_key AND token = own;
  END IF;`,
    reply: "lost, (ends_at - at_time) / 1000 AS remainingMs",
  },

  // If a transaction has locked the pin, the pin stays until that transaction has ended. Rows of other grants that have ended may be left
  // without a pin, and no acquire would find them.
  release: {
    params: keyAndToken,
    body: `${lockKey} ${findOwn}
  DELETE FROM holdfast_holders WHERE k = lock_key AND (token = own OR expires_at <= at_time);
  ${unpin}
  DELETE FROM holdfast_waiters WHERE k = lock_key AND token = own;`,
    written: `NOT EXISTS (SELECT 1 FROM holdfast_holders WHERE k = lock_key AND token = own)
      AND NOT EXISTS (SELECT 1 FROM holdfast_waiters WHERE k = lock_key AND token = own)`,
    reply: "live IS NOT NULL AS held",
  },

  downgrade: {
    params: keyAndToken,
    body: `${lockKey} ${findOwn}
  IF live IS NOT NULL THEN
    UPDATE holdfast_holders SET weight = 1 WHERE k = lock_key AND token = own;
  END IF;`,
    reply: "live IS NOT NULL AS held",
  },

  limit: {
    params: "lock_key VARBINARY(512), new_capacity BIGINT",
    variables: "DECLARE present VARCHAR(16);",
    body: `${lockKey}
  IF EXISTS (SELECT 1 FROM holdfast_holders WHERE k = lock_key AND broken IS NULL AND expires_at > at_time)
    OR EXISTS (SELECT 1 FROM holdfast_waiters WHERE k = lock_key AND deadline > at_time AND seen_until > at_time)
  THEN
    IF lock_kind <> 'semaphore' THEN
      SET present = lock_kind;
    ELSE
      UPDATE holdfast_locks SET capacity = new_capacity WHERE k = lock_key;
    END IF;
  END IF;`,
    reply: "present",
  },

  // The row keeps the reason until the TTL has passed, for the holder's next request. With a note, the same transaction writes a record.
  break: {
    params:
      "lock_key VARBINARY(512), given BIGINT, break_reason VARCHAR(1024) CHARACTER SET utf8mb4, new_note BLOB",
    variables: `DECLARE own VARBINARY(255);
  DECLARE audit_id, oldest BIGINT;`,
    body: `${lockKey}
  SELECT token INTO own FROM holdfast_holders
    WHERE k = lock_key AND fencing = given AND broken IS NULL AND expires_at > at_time;
  IF own IS NOT NULL THEN
    UPDATE holdfast_holders SET broken = break_reason WHERE k = lock_key AND token = own;
    ${unpin}
    IF new_note IS NOT NULL THEN
    ${recordBreak}
    END IF;
  END IF;`,
    written: `NOT EXISTS (SELECT 1 FROM holdfast_holders WHERE k = lock_key AND token = own AND fencing = given AND broken IS NULL)`,
    reply: "own AS token, CAST(audit_id AS CHAR) AS auditId",
  },

  // Removes a lock row that was not used for an hour.
  sweep: {
    params: "lock_key VARBINARY(512)",
    variables: "DECLARE own VARBINARY(255) DEFAULT '';",
    body: `${lockKey}
  ${unpin}
  DELETE FROM holdfast_holders WHERE k = lock_key AND expires_at <= at_time;
  DELETE FROM holdfast_waiters WHERE k = lock_key AND seen_until <= at_time;
  IF NOT EXISTS (SELECT 1 FROM holdfast_pins WHERE k = lock_key)
    AND NOT EXISTS (SELECT 1 FROM holdfast_holders WHERE k = lock_key)
    AND NOT EXISTS (SELECT 1 FROM holdfast_waiters WHERE k = lock_key)
  THEN
    DELETE FROM holdfast_locks WHERE k = lock_key AND fencing < at_time - 3600000000;
  END IF;`,
    reply: "1 AS swept",
  },

  // The lock, the holders and the first waiters of each key in use from the first key to the last one.
  states: {
    params: "first_key VARBINARY(512), last_key VARBINARY(512)",
    body: `SET at_time = ${now};
  SELECT k, kind, capacity FROM holdfast_locks l WHERE k BETWEEN first_key AND last_key
    AND (EXISTS (SELECT 1 FROM holdfast_holders h WHERE h.k = l.k AND ${inForce})
      OR EXISTS (SELECT 1 FROM holdfast_waiters w WHERE w.k = l.k AND ${isWaiting}));
  SELECT k, info, weight, CAST(fencing AS CHAR) AS fencing, (expires_at - at_time) / 1000 AS remainingMs, at_time / 1000 AS now
    FROM holdfast_holders WHERE k BETWEEN first_key AND last_key AND ${inForce} ORDER BY expires_at;
  SELECT k, owner, CAST(ticket AS CHAR) AS ticket, at_time / 1000 AS now, total
    FROM (SELECT k, owner, ticket, COUNT(*) OVER (PARTITION BY k) AS total, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ticket) AS place
      FROM holdfast_waiters WHERE k BETWEEN first_key AND last_key AND ${isWaiting}) w
    WHERE place <= ${shownWaiters} ORDER BY place;`,
  },

  // The next keys with a grant in force, in the order of their bytes.
  held_keys: {
    params: "start_key VARBINARY(512), after_key VARBINARY(512), page BIGINT",
    body: `SET at_time = ${now};
  SELECT DISTINCT k FROM holdfast_holders WHERE k >= start_key AND LEFT(k, LENGTH(start_key)) = start_key
    AND (after_key IS NULL OR k > after_key) AND ${inForce} ORDER BY k LIMIT page;`,
  },

  is_current: {
    params: "lock_key VARBINARY(512), given BIGINT",
    body: `SET at_time = ${now};
  SELECT COUNT(*) INTO live FROM holdfast_holders WHERE k = lock_key AND fencing = given AND ${inForce};`,
    reply: "live",
  },

  audit: {
    params: "",
    body: `SELECT CAST(id AS CHAR) AS id, broken_at / 1000 AS at, k, CAST(fencing AS CHAR) AS fencing, note
    FROM holdfast_audit WHERE id > 0 ORDER BY holdfast_audit.id;`,
  },

  // The keys of lock rows that were not used for an hour.
  old_keys: {
    params: "",
    body: `SET at_time = ${now};
  SELECT k FROM holdfast_locks l WHERE fencing < at_time - 3600000000
    AND NOT EXISTS (SELECT 1 FROM holdfast_holders h WHERE h.k = l.k AND h.expires_at > at_time) LIMIT ${maxSweptRows};`,
  },
};

/** Without autocommit, the read starts a transaction, which must not stay open. */
const checkOf = (written: string): string => `
  SET is_written = (${written});
  COMMIT AND NO CHAIN NO RELEASE;
  IF is_written IS NOT TRUE THEN
    SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'The COMMIT of the change was interrupted';
  END IF;`;

/** The version of the procedures is a part of their names, so that clients of two versions work side by side. */
export const procedureName = (name: string): string => `holdfast6_${name}`;

/**
 * Each procedure is one transaction, and a change is committed before the reply. A frozen client therefore cannot hold a row lock. The
 * server refuses SET TRANSACTION inside of a transaction, so that nothing depends on a transaction that a program left open, and
 * nothing ends it.
 *
 * Nothing depends on settings that a program left: read-only transactions, chains of transactions, or a `timestamp`, which stops the clock.
 * Where the server refuses to reset `timestamp`, the program cannot set it either.
 *
 * If KILL QUERY or a time limit interrupts SKIP LOCKED, MariaDB 10.11 goes on with the next statement, and the COMMIT rolls the transaction
 * back without an error. So the change of a procedure with SKIP LOCKED is read again before the reply.
 */
export const procedureStatements: readonly string[] = Object.entries(procedures).map(
  ([
    name,
    { params, variables = "", body, written, reply },
  ]) => `CREATE PROCEDURE ${procedureName(name)}(${params})
BEGIN
  DECLARE at_time, live, ends_at, pin, free_pin, lock_capacity, lock_fencing BIGINT;
  DECLARE lock_kind VARCHAR(16);
  DECLARE is_written BOOL;
  ${variables}
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    SET timestamp = DEFAULT;
  END;
  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
    START TRANSACTION;
    ${body}
    COMMIT AND NO CHAIN NO RELEASE;
  END;${written === undefined ? "" : checkOf(written)}${reply === undefined ? "" : `\n  SELECT ${reply};`}
END`,
);
