import { instantNow, type Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest, Grant, MultiAcquired } from "../../../driver.ts";
import { validFrom } from "../../../validity.ts";
import { engineError, isReadOnlyError, outcomeOf, timeoutError } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "../server/server.ts";
import type { ReleaseQueue } from "../server/release-queue.ts";
import { acquireManyScript } from "../protocol/scripts.generated.ts";
import { withTimeout } from "../../../runtime/timeout.ts";
import { encodeMetadata } from "../protocol/metadata.ts";

/** The request for one of several locks. */
export interface KeyRequest {
  readonly request: AcquireRequest;
  readonly keys: LockKeys;
  readonly token: string;
}

interface MultiKeyDeps {
  readonly server: RedisServer;
  readonly clock: Clock;
  readonly releaseQueue: ReleaseQueue;
  readonly commandTimeoutMs: number;
}

/**
 * Acquires several free locks in one step, or none. If the server does not answer in time, the grants that it may have made are cleaned
 * up, even after a late reply.
 */
export async function acquireMany(
  keyRequests: readonly KeyRequest[],
  deps: MultiKeyDeps,
): Promise<MultiAcquired> {
  const { server, clock, commandTimeoutMs } = deps;
  const args = keyRequests.flatMap(({ token, request: { ttlMs, fencingCount, info } }) => [
    token,
    String(ttlMs),
    String(fencingCount),
    encodeMetadata(info),
  ]);
  const sent = instantNow(clock);
  const latest = server.latestExecution();
  const keys = [server.counter, ...keyRequests.flatMap((keyRequest) => keyRequest.keys)];
  const answering = server.connection.run(acquireManyScript, keys, [latest, ...args]);
  let answer: unknown;
  try {
    answer = await withTimeout(clock, commandTimeoutMs, answering);
    if (answer === undefined) {
      server.refreshPrimary();
      throw timeoutError(commandTimeoutMs);
    } else if (Number((answer as unknown[])[1]) < 0) {
      throw timeoutError(commandTimeoutMs); // the server executed the call too late, or its clock was set, and the reply has its present time
    }
  } catch (error) {
    if (isReadOnlyError(error)) {
      server.refreshPrimary();
    }
    cleanUp(keyRequests, deps, Number(latest));
    throw engineError(error, keyRequests[0]?.request.key, outcomeOf(error));
  }
  const [, heldIndex, ...grants] = answer as [unknown, unknown, ...unknown[][]];
  if (Number(heldIndex) > 0) {
    return { outcome: "held", key: keyRequests[Number(heldIndex) - 1]?.request.key ?? "" };
  }
  return {
    outcome: "granted",
    grants: keyRequests.map((keyRequest, index) => grantOf(keyRequest, grants[index] as unknown[], sent)),
  };
}

function grantOf(
  { request, token }: KeyRequest,
  answer: unknown[],
  sent: ReturnType<typeof instantNow>,
): Grant {
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

function cleanUp(
  keyRequests: readonly KeyRequest[],
  { releaseQueue, clock }: MultiKeyDeps,
  latest: number,
): void {
  for (const { request, keys, token } of keyRequests) {
    const until = clock.now() + request.ttlMs;
    releaseQueue.cleanUp({ key: request.key, keys, token, queueArgs: "", until, latest });
  }
}
