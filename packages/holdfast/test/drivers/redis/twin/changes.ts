import type { LockKeys } from "../../../../src/drivers/redis/keys.ts";
import type { Store } from "../../../../src/testing/twin/store.ts";
import type { Step } from "./steps.ts";

/** What is done to the data behind the scripts' back: on the real server, and on the twin. */
export interface Change {
  readonly commands: readonly (readonly string[])[];
  readonly change: (store: Store) => void;
}

export function changes(
  step: Exclude<Step, { type: "operate" | "mute" }>,
  keys: LockKeys = ["", "", "", ""],
  deadWaiter: (n: number) => string,
): Change {
  const [K, queue, fence] = keys;
  switch (step.type) {
    case "expire":
      return limit(keys[step.part] as string, 1);
    case "limit":
      return limit(keys[step.part] as string, step.ttlMs);
    case "delete":
      return drop(keys[step.part] as string);
    case "spoil":
      return spoil(keys[step.part] as string, step.part === 0);
    case "seize":
      return seize(K, step.ttlMs);
    case "count":
      return count(fence, step.last);
    case "crowd":
      return crowd(queue, step, deadWaiter);
    case "flush":
      return {
        commands: [["FLUSHALL"]],
        change: (store) => {
          store.flushAll();
        },
      };
  }
}

function limit(key: string, ttlMs: number | null): Change {
  if (ttlMs === null) {
    return {
      commands: [["PERSIST", key]],
      change: (store) => {
        store.persist(key);
      },
    };
  }
  return {
    commands: [["PEXPIRE", key, String(ttlMs)]],
    change: (store) => {
      store.pexpire(key, ttlMs);
    },
  };
}

function drop(key: string): Change {
  return { commands: [["DEL", key]], change: (store) => void store.del(key) };
}

/** Gives the key a type that it may not have. */
function spoil(key: string, isLock: boolean): Change {
  return {
    commands: [["DEL", key], isLock ? ["HSET", key, "a", "1"] : ["SET", key, "spoilt"]],
    change: (store) => {
      store.del(key);
      if (isLock) {
        store.hset(key, "a", "1");
      } else {
        store.set(key, "spoilt");
      }
    },
  };
}

/** Another client library takes the lock. */
function seize(key: string, ttlMs: number | null): Change {
  const value = "another library's";
  return {
    commands: [["SET", key, value, ...(ttlMs === null ? [] : ["PX", String(ttlMs)])]],
    change: (store) => {
      store.set(key, value, ttlMs ?? undefined);
    },
  };
}

function count(key: string, last: number): Change {
  const fields = ["first", String(last), "last", String(last)];
  return {
    commands: [
      ["DEL", key],
      ["HSET", key, ...fields],
    ],
    change: (store) => {
      store.del(key);
      store.hset(key, ...fields);
    },
  };
}

/** Many waiters whose processes are gone, and what is no waiter at all. */
function crowd(
  key: string,
  { dead, junk }: { readonly dead: number; readonly junk: boolean },
  deadWaiter: (n: number) => string,
): Change {
  const members = [...(junk ? ["junk"] : []), ...Array.from({ length: dead }, (_, n) => deadWaiter(n))];
  return {
    commands: [["DEL", key], ...members.map((member, n) => ["ZADD", key, String(n % 5), member])],
    change: (store) => {
      store.del(key);
      members.forEach((member, n) => {
        store.zadd(key, n % 5, member);
      });
    },
  };
}
