import { byRules, redis, type Mutant } from "../mutant.ts";

/** Mutants of the names of keys on the server. */
export const keys: readonly Mutant[] = [
  {
    name: "prefix-may-be-reserved",
    brokenRule: "derived keys have their own name space, with which no prefix may begin",
    hasCounterexample: true,
    edits: [
      redis(
        "protocol/keys",
        "    if (isReserved(this.#prefix)) {",
        "    if (this.#prefix === reservedPrefix.repeat(2)) {",
      ),
      redis("protocol/keys", "    if (isReserved(lock)) {", "    if (lock === reservedPrefix.repeat(2)) {"),
    ],
    killers: [byRules("drivers/redis/protocol/keys", "no prefix reaches the library's")],
  },
  {
    name: "two-locks-share-a-queue",
    brokenRule: "no key of a user can be the derived key of another",
    hasCounterexample: true,
    edits: [redis("protocol/keys", "? `${lock}:` : `{${lock}}`;", "? lock : `{${lock}}`;")],
    killers: [byRules("drivers/redis/protocol/keys", "no two locks share a derived key")],
  },
  {
    name: "derived-keys-have-a-slot-of-their-own",
    brokenRule: "T(K) = K if K has a hash tag, else {K}, so derived keys share the slot of K",
    edits: [redis("protocol/keys", "? `${lock}:` : `{${lock}}`;", "? `${lock}:` : lock;")],
    killers: [byRules("drivers/redis/protocol/keys", "all keys of a lock share its slot")],
  },
  {
    name: "one-token-for-several-attempts",
    brokenRule: "every attempt has a new token",
    hasCounterexample: true,
    edits: [
      redis(
        "protocol/token",
        "return `${random.id()}:${clientId}:${mark}${ticket}`;",
        "return `${hash32(clientId)}:${clientId}:${mark}${ticket}`;",
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a new grant to the next caller is another attempt"),
      byRules("drivers/redis/redlock/late-requests", "a new grant to the next caller is another attempt"),
    ],
  },
  {
    name: "requeued-request-keeps-its-token",
    brokenRule: "requeue uses a new token, because a token is never used for two grants",
    hasCounterexample: true,
    edits: [
      redis(
        "single/driver",
        "new ServerAcquire(this.#registry, request, keys, { ignoresQueueLimit: true });",
        "Object.assign(new ServerAcquire(this.#registry, request, keys, { ignoresQueueLimit: true }), {\n      token: previous.token,\n    });",
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a new grant to the next caller is another attempt"),
    ],
  },
];
