import { byServer, edit, type Mutant } from "../mutant.ts";

const functions = "drivers/postgres/functions.ts";

/** Mutants of the functions and of the fence in PostgreSQL. */
export const postgres: readonly Mutant[] = [
  {
    name: "postgres-number-is-the-time-alone",
    brokenRule:
      "a fencing token is larger than the last one of its key, also after the server's clock was set back",
    edits: [
      edit(
        functions,
        "given := greatest(lock.fencing + 1, floor(extract(epoch FROM at_time) * 1000000)::bigint);",
        "given := floor(extract(epoch FROM at_time) * 1000000)::bigint;",
      ),
    ],
    killers: [byServer("integration/postgres/schema", "fencing tokens rise although the server's clock")],
  },
  {
    name: "postgres-number-is-not-stored",
    brokenRule: "the lock row keeps the last fencing token of its key",
    edits: [edit(functions, "SET fencing = given, kind = r->>'kind'", "SET kind = r->>'kind'")],
    killers: [byServer("integration/postgres/schema", "fencing tokens rise although the server's clock")],
  },
  {
    name: "postgres-time-of-the-statement",
    brokenRule: "a grant starts after its request got the row lock, so the time is read after that",
    edits: [edit(functions, "  at_time := clock_timestamp();\n", "  at_time := now();\n")],
    killers: [byServer("integration/postgres/faults", "an acquire that waited for a row lock")],
  },
  {
    name: "postgres-waiters-are-overtaken",
    brokenRule: "a lock is granted only to the first in its queue",
    edits: [edit(functions, "IF ahead = 0 AND held.used", "IF held.used")],
    killers: [
      byServer("integration/postgres/conformance", "without hand-over all callers get the lock in the"),
    ],
  },
  {
    name: "postgres-grant-is-not-durable",
    brokenRule: "the server stores a grant before its reply, whatever the user's setting is",
    edits: [
      edit(
        functions,
        "  IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;\n  LOOP",
        "  LOOP",
      ),
    ],
    killers: [byServer("integration/postgres/schema", "a grant and an extension are durable also where")],
  },
  {
    name: "postgres-call-within-a-transaction",
    brokenRule: "no call takes effect in a transaction that the program left open",
    edits: [edit(functions, "  COMMIT;\n  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\n", "")],
    killers: [
      byServer("integration/postgres/open-transactions", "gets no grant, which a ROLLBACK would undo"),
    ],
  },
  {
    name: "postgres-clock-by-the-search-path",
    brokenRule: "no call depends on settings that the program left on a connection",
    edits: [edit(functions, "  SET LOCAL search_path = pg_catalog, pg_temp;\n", "")],
    killers: [byServer("integration/postgres/session-settings", "SET search_path = mock")],
  },
  {
    name: "postgres-fence-without-a-transaction",
    brokenRule: "assertHeld resolves only within a transaction",
    edits: [
      edit("drivers/postgres/assert-held.ts", 'valuesOf(present)[0] !== "true"', "present === undefined"),
    ],
    killers: [byServer("integration/postgres/open-transactions", "is what assertHeld needs")],
  },
  {
    name: "database-grant-ends-with-its-lease",
    brokenRule:
      "a grant is stored for the largest difference of the servers' clocks longer than its lease is valid",
    edits: [edit("drivers/store/store-calls.ts", "settings.graceMs ?? 0", "0 * (settings.graceMs ?? 0)")],
    killers: [byServer("integration/postgres/failover", "whose clock is ahead ends no valid lease")],
  },
  {
    name: "postgres-fence-locks-no-row",
    brokenRule: "a transaction with a checked lease keeps the row of the grant locked until its end",
    edits: [
      edit(
        functions,
        "AND expires_at > clock_timestamp() FOR KEY SHARE;",
        "AND expires_at > clock_timestamp();",
      ),
    ],
    killers: [
      byServer(
        "integration/postgres/assert-held",
        "no other holder gets the key before the transaction has ended, although the lease expires",
      ),
    ],
  },
];
