import type { Redis } from "ioredis";

/** How a server's clock differs from ours, known to half of the shortest round trip. */
export interface ClockSample {
  readonly offsetMs: number;
  readonly uncertaintyMs: number;
  /** When it was taken, on our monotonic clock. */
  readonly at: number;
}

const sampleCount = 9;
/** Our wall clock may itself be set meanwhile: everything is counted from one look at it. */
const epochMs = Date.now() - performance.now();

/** The best of nine samples: that with the shortest round trip. */
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
