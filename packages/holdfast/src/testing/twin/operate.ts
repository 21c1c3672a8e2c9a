import { acquire, passOn } from "./acquire.ts";
import { extend, verify } from "./extend.ts";
import { inspect } from "./inspect.ts";
import { isLatch, Latch } from "./latch.ts";
import { agree, yieldVote } from "./quorum.ts";
import { breakGrant, release } from "./release.ts";
import { readOnly, ServerError } from "./server-error.ts";
import { isShared, Share } from "./share.ts";
import { requirePrimary, toNumber, type Answer, type Scope, type Server } from "./state.ts";
import { usual } from "./usual.ts";

const candidateMicros = 1_000_000;
type Operation = readonly [perform: (scope: Scope, args: readonly string[]) => Answer, argumentCount: number];

/** What only locks have that several may hold. */
function ofShares(): Answer {
  throw new ServerError("KINDMISMATCH mutex");
}

/** A key that nobody holds may become a latch. */
function ofLatches(name: string): Operation[0] {
  return (scope, args) => {
    if (scope.holder !== null) {
      throw new ServerError("KINDMISMATCH mutex");
    }
    return new Latch(scope).perform(name, args);
  };
}

const operations: Readonly<Record<string, Operation>> = {
  acquire: [acquire, 6],
  passOn: [passOn, 6],
  release: [release, 2],
  extend: [extend, 4],
  verify: [verify, 1],
  breakGrant: [breakGrant, 3],
  inspect: [inspect, 0],
  yield: [yieldVote, 6],
  agree: [agree, 3],
  downgrade: [ofShares, 2],
  setLimit: [ofShares, 1],
  countDown: [ofLatches("countDown"), 5],
  awaitLatch: [ofLatches("awaitLatch"), 6],
  leaveLatch: [ofLatches("leaveLatch"), 2],
};

/** Runs a batch of operations, each isolated from the errors of the others. */
export function operate(server: Server, keys: readonly string[], args: readonly string[]): Answer {
  const now = server.micros();
  const isQuorum = args[2] === "1";
  const answers: unknown[] = [isQuorum ? [now, server.runId, server.uptimeSeconds()] : now];
  const settings = {
    server,
    store: server.store,
    now,
    isQuorum,
    retentionMs: Number(args[0]),
    queueBound: Number(args[1]),
  };
  const operations = JSON.parse(args[3] as string) as readonly string[];
  let [at, count] = [0, 0];
  let isProved = isQuorum;
  while (at < operations.length) {
    const name = operations[at] as string;
    const [K, queue, fence, info] = keys.slice(4 * count, 4 * count + 4) as [string, string, string, string];
    const floor = isQuorum ? near(now, operations[at + 1]) : now;
    const [perform, argumentCount] = operationOf(name);
    const first = at + (isQuorum ? 2 : 1);
    const own = operations.slice(first, first + argumentCount);
    const shared = { ...settings, floor, K, queue, fence, info, holder: null };
    const answer = isolated(() => {
      if (isLatch(shared)) {
        return new Latch(shared).perform(name, own);
      } else if (isShared(shared, name, own)) {
        return new Share(shared).perform(name, own);
      }
      dropExpired(shared);
      const scope = { ...shared, holder: server.store.get(K) };
      return usual(scope, name, own) ?? perform(scope, own);
    });
    if (String((answer as unknown[])[1]).startsWith("READONLY ")) {
      throw new ServerError(readOnly);
    }
    isProved ||= isOfPrimary(name, answer);
    answers.push(answer);
    at = first + argumentCount;
    count += 1;
  }
  if (!isProved) {
    requirePrimary(server);
  }
  return answers;
}

function isOfPrimary(name: string, answer: Answer): boolean {
  if (["verify", "inspect", "countDown", "awaitLatch"].includes(name)) {
    return false;
  } else if (!Array.isArray(answer)) {
    return answer === 1 || name === "acquire";
  }
  const [status, , position] = answer as unknown[];
  return name === "acquire" && status === 0 ? Number(position) >= 0 : status === 1;
}

/** Where all who shared K have expired, it is free. */
function dropExpired(scope: Scope): void {
  if (scope.store.type(scope.K) === "zset") {
    isolated(() => new Share(scope).perform("inspect", []));
  }
}

/** A candidate for a number, kept within a second of the server's time. */
function near(now: number, candidate: string | undefined): number {
  const number = toNumber(candidate);
  if (number === undefined) {
    throw new TypeError(`Expected a candidate for a number, got ${candidate}`);
  }
  return Math.max(now - candidateMicros, Math.min(now + candidateMicros, number));
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
