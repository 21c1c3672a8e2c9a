import { setTimeout as pause } from "node:timers/promises";

import type { ClientState } from "./client-state.ts";
import type { RecordedLease } from "./recorded-lease.ts";

/**
 * Reads both counters of the protected resource, works, and writes the counters. A reader reads them again instead. The lease is checked only
 * before the reads. A process that is paused later would not see the loss either, and the resource must be safe.
 */
export async function useResource(
  client: ClientState,
  { lease, requestId, request }: RecordedLease,
  holdMs: number,
  inBetween?: () => Promise<void>,
): Promise<void> {
  if (lease.remainingMs() === 0) {
    return;
  }
  const visit = visits[request.lockKind ?? "mutex"] ?? readAndWrite;
  const first = await visit(client, lease.fencingTokens);
  await pause(holdMs);
  await inBetween?.();
  const accepted = await first();
  const { recorder } = client;
  recorder.write({ e: "used", at: recorder.clock.now(), requestId, accepted });
}

type Tokens = ReadonlyMap<string, bigint>;

/** @returns the end of the visit, which resolves with whether the resource accepted everything */
type Visit = (client: ClientState, tokens: Tokens) => Promise<() => Promise<boolean>>;

const visits: Readonly<Record<string, Visit>> = { read: readTwice, semaphore: holdOnly };

async function readAndWrite({ resource }: ClientState, tokens: Tokens): Promise<() => Promise<boolean>> {
  const read = await Promise.all(
    Array.from(tokens, async ([key, token]) => ({ key, token, found: await resource.read(key, token) })),
  );
  return async () => {
    const written = await Promise.all(
      read.map(({ key, token, found: { checked, unchecked } }) =>
        resource.write(key, token, { checked: checked + 1, unchecked: unchecked + 1 }),
      ),
    );
    return read.every(({ found }) => found.accepted) && written.every(({ accepted }) => accepted);
  };
}

async function readTwice({ resource }: ClientState, tokens: Tokens): Promise<() => Promise<boolean>> {
  const lookOnce = async (): Promise<boolean> => {
    const read = await Promise.all(Array.from(tokens, ([key, token]) => resource.readShared(key, token)));
    return read.every(({ accepted }) => accepted);
  };
  const first = await lookOnce();
  return async () => (await lookOnce()) && first;
}

/** Holders of permits overlap, so the resource cannot order their tokens. */
function holdOnly(): Promise<() => Promise<boolean>> {
  return Promise.resolve(() => Promise.resolve(true));
}
