/**
 * How many times slower this machine is now than the idle machine for which the time limits of the tests were chosen, from 1 on. The
 * test runner measures the factor once at its start (`vitest.config.ts`).
 */
export const timeFactor: number = Number(process.env["HOLDFAST_TIME_FACTOR"] ?? 1);

/**
 * A time limit of a test on this machine, ms. A limit ends a test that hangs, and measures nothing, so it is never below 10 s.
 * @param onIdleMachine the limit on an idle machine, ms
 */
export function limitMs(onIdleMachine: number): number {
  return Math.ceil(Math.max(10_000, onIdleMachine) * timeFactor);
}

/** The limit of a wait for an event within a test, ms. It is far below the usual TTL of 30 s, so that an expiry is not taken for the event. */
export const eventLimitMs: number = limitMs(10_000);

/** Whether tests repeat their random cases as often as `npm run verify` needs, and not only as often as `npm test` has time for. */
export const isThorough: boolean = process.env["HOLDFAST_THOROUGH"] === "true";
