import { sha1 } from "../../../runtime/random.ts";
import type { Script } from "../protocol/script.ts";

const inDatabases = new Map<number, WeakMap<Script, Script>>();

/**
 * The same script, which first selects its database and otherwise does nothing. A client library goes on in database 0 where its
 * `SELECT` is refused, and sends unanswered commands on a new connection before anybody could ask. `SELECT` in a script counts for
 * that call alone. Nothing is changed for database 0, where each connection begins.
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

/** On the script's first line, so that the server's errors name the lines of the source. */
function selecting({ name, source }: Script, database: number): Script {
  const refused = `NODATABASE Expected database ${database}, the server refuses it: `;
  const select =
    `do local r = redis.pcall('SELECT', '${database}') ` +
    `if r.err then return redis.error_reply('${refused}' .. r.err) end end `;
  const text = select + source;
  return { name, sha1: sha1(text), source: text };
}
