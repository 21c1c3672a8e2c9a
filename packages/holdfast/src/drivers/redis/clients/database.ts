import { sha1 } from "../../../runtime/random.ts";
import type { Script } from "../protocol/script.ts";

const inDatabases = new Map<number, WeakMap<Script, Script>>();

/**
 * The script with a `SELECT` of its database before the first statement. For database 0 the script is unchanged, because each
 * connection begins there.
 *
 * A client library stays in database 0 if the server refuses its `SELECT`. It also sends unanswered commands on a new connection before
 * a check is possible. `SELECT` in a script affects that call only.
 */
export function inDatabase(script: Script, database: number): Script {
  if (database === 0) {
    return script;
  }
  const scripts = inDatabases.get(database) ?? new WeakMap<Script, Script>();
  inDatabases.set(database, scripts);
  const made = scripts.get(script) ?? selecting(script, database);
  scripts.set(script, made);
  return made;
}

/** The `SELECT` is on the first line of the script, so the errors of the server have the line numbers of the source. */
function selecting({ name, source }: Script, database: number): Script {
  const refused = `NODATABASE Expected database ${database}, the server refuses it: `;
  const select =
    `do local r = redis.pcall('SELECT', '${database}') ` +
    `if r.err then return redis.error_reply('${refused}' .. r.err) end end `;
  const text = select + source;
  return { name, sha1: sha1(text), source: text };
}
