import { ServerClocks, type ServerClock } from "@holdfast/test-kit";

import { onCleanup } from "./quorum-servers.ts";

/** Creates `count` clocks for servers, and removes them after the test. */
export async function makeClocks(count: number): Promise<readonly ServerClock[]> {
  const made = await ServerClocks.make(count);
  onCleanup(() => made[Symbol.asyncDispose]());
  return made.clocks;
}
