/** The server's time, µs since 1970. It advances within a procedure, and does not depend on a time zone. */
export const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

const options = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

/**
 * Keys are bytes, because the collations of MySQL ignore spaces at the end. `expires_at`, `deadline` and `seen_until` are in µs since
 * 1970. A pin is the right of one grant to its key. It exists from the grant until another request may get the key. An extension changes
 * the holder and leaves the pin alone, so that a transaction with a shared lock on the pin does not delay extensions.
 *
 * The row 0 of `holdfast_audit` has the last id. Its row lock gives concurrent breaks an order.
 */
export const tables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS holdfast_locks (
  k VARBINARY(512) PRIMARY KEY, kind VARCHAR(16) NOT NULL, capacity BIGINT NOT NULL, fencing BIGINT NOT NULL, KEY (fencing)) ${options}`,
  `CREATE TABLE IF NOT EXISTS holdfast_holders (
  k VARBINARY(512), token VARBINARY(255), weight BIGINT NOT NULL, fencing BIGINT NOT NULL, expires_at BIGINT NOT NULL,
  info BLOB NOT NULL, broken VARCHAR(1024), PRIMARY KEY (k, token)) ${options}`,
  `CREATE TABLE IF NOT EXISTS holdfast_pins (
  k VARBINARY(512), fencing BIGINT, token VARBINARY(255) NOT NULL, weight BIGINT NOT NULL, PRIMARY KEY (k, fencing)) ${options}`,
  `CREATE TABLE IF NOT EXISTS holdfast_waiters (
  k VARBINARY(512), token VARBINARY(255), ticket BIGINT NOT NULL, deadline BIGINT NOT NULL, seen_until BIGINT NOT NULL,
  owner BLOB NOT NULL, PRIMARY KEY (k, token)) ${options}`,
  `CREATE TABLE IF NOT EXISTS holdfast_audit (
  id BIGINT PRIMARY KEY, broken_at BIGINT NOT NULL, k VARBINARY(512) NOT NULL, fencing BIGINT NOT NULL, note BLOB NOT NULL) ${options}`,
];
