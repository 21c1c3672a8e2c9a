import type { Redis } from "ioredis";

/** The difference between a server's clock and the local clock, exact to half of the shortest round trip. */
export interface ClockSample {
  readonly offsetMs: number;
  readonly uncertaintyMs: number;
  /** The time of the sample, on the local monotonic clock. */
  readonly at: number;
}

const sampleCount = 9;
/** All times count from one reading of the wall clock, because the wall clock may be set during the check. */
const epochMs = Date.now() - performance.now();

/** The sample with the shortest round trip, of nine. */
export async function sampleClock(client: Redis): Promise<ClockSample> {
  let best: ClockSample | undefined;
  for (let index = 0; index < sampleCount; index += 1) {
    const sent = performance.now();
    const [seconds, micros] = (await client.time()) as unknown as [number, number];
    const received = performance.now();
    const uncertaintyMs = (received - sent) / 2;
    if (best === undefined || uncertaintyMs < best.uncertaintyMs) {
      const server = Number(seconds) * 1_000 + Number(micros) / 1_000;
      best = { offsetMs: server - epochMs - (sent + received) / 2, uncertaintyMs, at: received };
    }
  }
  return best as ClockSample;
}
