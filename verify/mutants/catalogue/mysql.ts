import { byServer, edit, type Mutant } from "../mutant.ts";

const acquire = "drivers/mysql/acquire-procedure.ts";

/** Mutants of the procedures and of the fence in MySQL and MariaDB. */
export const mysql: readonly Mutant[] = [
  {
    name: "mysql-number-is-the-time-alone",
    brokenRule:
      "a fencing token is larger than the last one of its key, also after the server's clock was set back",
    edits: [edit(acquire, "given = GREATEST(COALESCE(lock_fencing, 0) + 1, at_time)", "given = at_time")],
    killers: [byServer("integration/mysql/faults", "fencing tokens rise although the server's clock")],
  },
  {
    name: "mysql-time-before-the-row-lock",
    brokenRule: "a grant starts after its request got the row lock, so the time is read after that",
    edits: [
      edit(
        acquire,
        "  SELECT kind, capacity, fencing INTO lock_kind, lock_capacity, lock_fencing\n    FROM holdfast_locks WHERE k = lock_key FOR UPDATE;\n  SET at_time = ${now};`",
        "  SET at_time = ${now};\n  SELECT kind, capacity, fencing INTO lock_kind, lock_capacity, lock_fencing\n    FROM holdfast_locks WHERE k = lock_key FOR UPDATE;`",
      ),
    ],
    killers: [byServer("integration/mysql/faults", "an acquire that waited for a row lock")],
  },
  {
    name: "mysql-call-within-a-transaction",
    brokenRule:
      "no call takes effect in a transaction that the program left open, and none ends that transaction",
    edits: [
      edit(
        "drivers/mysql/procedures.ts",
        "  SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;\n",
        "",
      ),
    ],
    killers: [byServer("integration/mysql/open-transactions", "gets no grant, no extension and no release")],
  },
  {
    name: "mysql-fence-without-a-transaction",
    brokenRule: "assertHeld resolves only within a transaction",
    edits: [edit("drivers/mysql/assert-held.ts", "if (!isRefused) {", "if (isRefused === undefined) {")],
    killers: [byServer("integration/mysql/open-transactions", "is what assertHeld needs")],
  },
  {
    name: "mysql-waiters-are-overtaken",
    brokenRule: "a lock is granted only to the first in its queue",
    edits: [edit(acquire, "IF result IS NULL AND ahead = 0 AND used", "IF result IS NULL AND used")],
    killers: [byServer("integration/mysql/faults", "a try does not overtake a waiter whose next poll")],
  },
  {
    name: "mysql-repeat-is-another-request",
    brokenRule: "a repeat of a granted request gets that grant",
    edits: [edit(acquire, "  IF live IS NOT NULL THEN\n    UPDATE", "  IF live < 0 THEN\n    UPDATE")],
    killers: [byServer("integration/mysql/faults", "an acquire whose reply is lost gets its own grant")],
  },
  {
    name: "mysql-fence-locks-no-pin",
    brokenRule: "a transaction with a checked lease keeps the pin of the grant locked until its end",
    edits: [edit("drivers/mysql/assert-held.ts", " AND fencing = ? LOCK IN SHARE MODE", " AND fencing = ?")],
    killers: [
      byServer(
        "integration/mysql/assert-held",
        "no other holder gets the key before the transaction ends, although the lease is released",
      ),
    ],
  },
];
