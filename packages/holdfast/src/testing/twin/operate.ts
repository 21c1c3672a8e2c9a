import { acquire, passOn } from "./acquire.ts";
import { extend, verify } from "./extend.ts";
import { inspect } from "./inspect.ts";
import { breakGrant, release } from "./release.ts";
import { ServerError } from "./server-error.ts";
import type { Answer, Scope, Server } from "./state.ts";
import { usual } from "./usual.ts";

type Operation = readonly [perform: (scope: Scope, args: readonly string[]) => Answer, argumentCount: number];

const operations: Readonly<Record<string, Operation>> = {
  acquire: [acquire, 6],
  passOn: [passOn, 6],
  release: [release, 2],
  extend: [extend, 3],
  verify: [verify, 1],
  breakGrant: [breakGrant, 3],
  inspect: [inspect, 0],
};

/** Runs a batch of operations, each isolated from the errors of the others. */
export function operate(server: Server, keys: readonly string[], args: readonly string[]): Answer {
  const now = server.micros();
  const answers: unknown[] = [now];
  const settings = {
    server,
    store: server.store,
    now,
    retentionMs: Number(args[0]),
    queueBound: Number(args[1]),
  };
  let at = 2;
  for (let i = 0; i < keys.length; i += 4) {
    const [K, queue, fence, info] = keys.slice(i, i + 4) as [string, string, string, string];
    const name = args[at] as string;
    const [perform, argumentCount] = operationOf(name);
    const own = args.slice(at + 1, at + 1 + argumentCount);
    const answer = isolated(() => {
      const scope = { ...settings, K, queue, fence, info, holder: server.store.get(K) };
      return usual(scope, name, own) ?? perform(scope, own);
    });
    answers.push(answer);
    at += 1 + argumentCount;
  }
  return answers;
}

function isolated(perform: () => Answer): Answer {
  try {
    return perform();
  } catch (error) {
    if (error instanceof ServerError) {
      return ["error", error.message];
    }
    throw error;
  }
}

function operationOf(name: string): Operation {
  const operation = operations[name];
  if (!operation) {
    throw new TypeError(`Expected the name of an operation, got ${name}`);
  }
  return operation;
}
