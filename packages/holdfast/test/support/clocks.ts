import { ServerClocks, type ServerClock } from "@holdfast/lab";

import { atEnd } from "./quorum-stage.ts";

/** So many clocks for servers. They are gone after the test. */
export async function makeClocks(count: number): Promise<readonly ServerClock[]> {
  const made = await ServerClocks.make(count);
  atEnd(() => made[Symbol.asyncDispose]());
  return made.clocks;
}
