import { numbers } from "./queue.ts";
import { digits, type Answer, type Scope } from "./state.ts";

const mostMembers = 100;

export function inspect(scope: Scope): Answer {
  const { store, K, queue, info, holder } = scope;
  const { first, last } = numbers(scope);
  const words = store.hgetall(info);
  return [
    holder ?? "",
    store.pttl(K),
    first === undefined ? "" : digits(first),
    last === undefined ? "" : digits(last),
    (store.hget(info, "token") ?? null) === holder ? words : [],
    store.zcard(queue),
    store.zrange(queue, 0, mostMembers - 1),
  ];
}
