import type { Clock } from "../../runtime/clock.ts";
import { backoffMs, jittered, type Random } from "../../runtime/random.ts";
import { EngineError, isLockError } from "../../errors.ts";
import { exists, type LockEvent, type LockState } from "../../lock-state.ts";
import { pause } from "../../runtime/timeout.ts";
import { bodyOf, type Client } from "./client.ts";
import { eventsOf } from "./sse.ts";
import { errorOf, problemOf } from "./problems.ts";
import { lockStateOf } from "./lock-state.ts";
import type { WireEvent } from "./wire.ts";

/** The service sends a comment every 15 s, so a silence of this length means a broken connection. */
const maxSilenceMs = 40_000;

/** The pause after the service has refused one more stream of this client, ms. Such a limit lasts longer than a failure. */
const limitedPauseMs = 10_000;

/** The parts of the driver that a watch uses. */
export interface WatchHost {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly requestTimeoutMs: number;
  inspect(key: string): Promise<LockState>;
}

/**
 * Watches by the events of the service. After a broken stream the client opens another one, which starts with a snapshot. A snapshot
 * omits locks that ended before, so the client inspects those keys. Ends when the signal aborts. Rejects with an error that is not
 * retryable.
 */
export async function* watchByEvents(
  host: WatchHost,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  const known = new Set<string>();
  for (let failures = 0; !signal.aborted; failures += 1) {
    let isLimited = false;
    try {
      for await (const event of eventsFrom(host, target, signal)) {
        if (signal.aborted) {
          return;
        }
        failures = 0;
        if (exists(event.state)) {
          known.add(event.key);
        } else {
          known.delete(event.key);
        }
        yield event;
      }
    } catch (error) {
      if (!signal.aborted && isLockError(error) && !error.retryable) {
        throw error;
      }
      isLimited = isLockError(error, "too-many-waiters");
    }
    const pauseMs = isLimited
      ? jittered(host.random, limitedPauseMs, 0.5)
      : backoffMs(host.random, failures, 2_000);
    await pause(host.clock, pauseMs, true, signal);
    yield* endedOf(host, known, signal);
  }
}

/** The locks that existed when the stream broke, and no longer exist. */
async function* endedOf(
  host: WatchHost,
  known: Set<string>,
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  for (const key of Array.from(known)) {
    const state = signal.aborted ? undefined : await host.inspect(key).catch(() => undefined);
    if (state && !exists(state)) {
      known.delete(key);
      yield { type: "gone", key, state };
    }
  }
}

async function* eventsFrom(
  { client, clock, requestTimeoutMs }: WatchHost,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  const query = new URLSearchParams(typeof target === "string" ? { key: target } : { prefix: target.prefix });
  const unresponsive = new AbortController();
  let timer = clock.setTimer(() => unresponsive.abort(), requestTimeoutMs);
  const received = (): void => {
    clock.clearTimer(timer);
    timer = clock.setTimer(() => unresponsive.abort(), maxSilenceMs);
  };
  try {
    const spec = {
      method: "GET",
      path: `/v1/events?${query.toString()}`,
      accept: "text/event-stream",
    } as const;
    const response = await client.send(spec, AbortSignal.any([signal, unresponsive.signal]));
    received();
    if (response.status !== 200) {
      throw errorOf(problemOf({ status: response.status, body: await bodyOf(response) }));
    }
    for await (const { event, data } of eventsOf(response.body, received)) {
      if (event === "snapshot" || event === "changed" || event === "gone") {
        const { type, key, state } = JSON.parse(data) as WireEvent;
        yield { type, key, state: lockStateOf(state) };
      }
    }
  } catch (error) {
    throw isLockError(error) ? error : client.failure(error);
  } finally {
    clock.clearTimer(timer);
    unresponsive.abort();
  }
  throw new EngineError("The lock service ended the stream of events", { outcome: "none", retryable: true });
}
