import { backoffMs } from "../../runtime/random.ts";
import { EngineError, isLockError } from "../../errors.ts";
import { exists, type LockEvent } from "../../lock-state.ts";
import { pause } from "../../runtime/timeout.ts";
import { bodyOf } from "./client.ts";
import type { HttpDriver } from "./driver.ts";
import { eventsOf } from "./sse.ts";
import { errorOf, problemOf } from "./problems.ts";
import { lockStateOf } from "./lock-state.ts";
import type { WireEvent } from "./wire.ts";

const maxSilenceMs = 40_000;

/**
 * Watches by the service's events. A stream that breaks is opened again: it starts with a snapshot, and what ended meanwhile is asked
 * for. Ends when the signal aborts; rejects where that cannot pass by itself.
 */
export async function* watchByEvents(
  driver: HttpDriver,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  const known = new Set<string>();
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      for await (const event of eventsFrom(driver, target, signal)) {
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
    }
    await pause(driver.clock, backoffMs(driver.random, failures, 2_000), true, signal);
    yield* endedOf(driver, known, signal);
  }
}

/** What was there when the stream broke, and is not any more. */
async function* endedOf(
  driver: HttpDriver,
  known: Set<string>,
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  for (const key of Array.from(known)) {
    const state = signal.aborted ? undefined : await driver.inspect(key).catch(() => undefined);
    if (state && !exists(state)) {
      known.delete(key);
      yield { type: "gone", key, state };
    }
  }
}

async function* eventsFrom(
  { client, clock, requestTimeoutMs }: HttpDriver,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  const query = new URLSearchParams(typeof target === "string" ? { key: target } : { prefix: target.prefix });
  const silent = new AbortController();
  let timer = clock.setTimer(() => silent.abort(), requestTimeoutMs);
  const received = (): void => {
    clock.clearTimer(timer);
    timer = clock.setTimer(() => silent.abort(), maxSilenceMs);
  };
  try {
    const spec = {
      method: "GET",
      path: `/v1/events?${query.toString()}`,
      accept: "text/event-stream",
    } as const;
    const response = await client.send(spec, AbortSignal.any([signal, silent.signal]));
    received();
    if (response.statusCode !== 200) {
      throw errorOf(problemOf({ status: response.statusCode ?? 0, body: await bodyOf(response) }));
    }
    for await (const { event, data } of eventsOf(response, received)) {
      if (event === "snapshot" || event === "changed" || event === "gone") {
        const { type, key, state } = JSON.parse(data) as WireEvent;
        yield { type, key, state: lockStateOf(state) };
      }
    }
  } catch (error) {
    throw isLockError(error) ? error : client.failure(error);
  } finally {
    clock.clearTimer(timer);
    silent.abort();
  }
  throw new EngineError("The stream of events ended", { outcome: "none", retryable: true });
}
