import { momentOf, type Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest, Grant, Together } from "../../../driver.ts";
import { validFrom } from "../../../validity.ts";
import { engineError, isOfReplica, outcomeOf, timeoutError } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Node } from "../server/server.ts";
import type { Releaser } from "../server/release-queue.ts";
import { acquireManyScript } from "../protocol/scripts.generated.ts";
import { within } from "../../../runtime/timeout.ts";
import { encodeWords } from "../protocol/metadata.ts";

/** One of the locks that are asked for acquireManyScript. */
export interface Part {
  readonly request: AcquireRequest;
  readonly keys: LockKeys;
  readonly token: string;
}

interface House {
  readonly node: Node;
  readonly clock: Clock;
  readonly releaser: Releaser;
  readonly commandTimeoutMs: number;
}

/**
 * Takes several free locks in one step, or none. Without an answer nothing is kept: what the server may have done is taken back, also
 * when its answer comes late.
 */
export async function takeTogether(parts: readonly Part[], house: House): Promise<Together> {
  const { node, clock, commandTimeoutMs } = house;
  const args = parts.flatMap(({ token, request: { ttlMs, want, words } }) => [
    token,
    String(ttlMs),
    String(want),
    encodeWords(words),
  ]);
  const sent = momentOf(clock);
  const latest = node.latestExecution();
  const keys = [node.counter, ...parts.flatMap((part) => part.keys)];
  const answering = node.connection.run(acquireManyScript, keys, [latest, ...args]);
  let answer: unknown;
  try {
    answer = await within(clock, commandTimeoutMs, answering);
    if (answer === undefined) {
      node.suspect();
      throw timeoutError(commandTimeoutMs);
    } else if (Number((answer as unknown[])[1]) < 0) {
      throw timeoutError(commandTimeoutMs); // the server executed it too late, or its clock was set, which is known now
    }
  } catch (error) {
    if (isOfReplica(error)) {
      node.suspect();
    }
    takeBack(parts, house, Number(latest));
    throw engineError(error, parts[0]?.request.key, outcomeOf(error));
  }
  const [, taken, ...grants] = answer as [unknown, unknown, ...unknown[][]];
  if (Number(taken) > 0) {
    return { outcome: "held", key: parts[Number(taken) - 1]?.request.key ?? "" };
  }
  return {
    outcome: "granted",
    grants: parts.map((part, index) => grantOf(part, grants[index] as unknown[], sent)),
  };
}

function grantOf({ request, token }: Part, answer: unknown[], sent: ReturnType<typeof momentOf>): Grant {
  const [, first, last] = answer;
  return {
    key: request.key,
    token,
    fencingToken: BigInt(String(first)),
    fencingCount: Number(last) - Number(first) + 1,
    validity: validFrom(sent, request.ttlMs),
    isClaim: false,
  };
}

function takeBack(parts: readonly Part[], { releaser, clock }: House, latest: number): void {
  for (const { request, keys, token } of parts) {
    const until = clock.now() + request.ttlMs;
    releaser.takeBack({ key: request.key, keys, token, terms: "", until, latest });
  }
}
