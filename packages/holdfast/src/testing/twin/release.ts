import { clientOf, leave, letGo, numbers, serveNext, tell } from "./queue.ts";
import { writeInfo, type Answer, type Scope } from "./state.ts";

/** How long a holder can learn at the least that its grant was broken. */
const shortestWordMs = 1_000;

/** Gives the grant back, or leaves the queue. */
export function release(scope: Scope, args: readonly string[]): Answer {
  const [token, terms] = args as [string, string];
  const { store, info, holder } = scope;
  if (holder === token) {
    return [1, letGo(scope) ? 1 : 0, ""];
  }
  leave(scope, token, terms);
  if (store.hget(info, "token") === token) {
    store.del(info);
  }
  return [0, serveNext(scope) ? 1 : 0, holder ?? ""];
}

/** An operator's force: ends the grant that the number belongs to, and tells its holder. */
export function breakGrant(scope: Scope, args: readonly string[]): Answer {
  const [number, kind, reason] = args as [string, string, string];
  const { server, store, K } = scope;
  const holder = scope.holder ?? "";
  const { first, last } = numbers(scope);
  const client = clientOf(holder);
  const isPresent =
    first !== undefined && last !== undefined && Number(number) >= first && Number(number) <= last;
  if (client === undefined || !isPresent) {
    return [0, 0];
  }
  const left = store.pttl(K);
  tell(server, kind, client, `broken ${encode([holder, K, reason])}`);
  const more = letGo(scope);
  writeInfo(scope, holder, String(Math.max(left, shortestWordMs)), JSON.stringify(["broken", reason]));
  return [1, more ? 1 : 0];
}

/** As `cjson.encode` writes texts: it escapes two characters more than `JSON.stringify`. */
export function encode(texts: readonly string[]): string {
  return JSON.stringify(texts).replaceAll("/", "\\/").replaceAll("\u007f", "\\u007f");
}
