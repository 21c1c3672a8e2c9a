import { nacos } from "holdfast/nacos";
import { describe, test } from "vitest";

import { clientConformance, patient, wholeConformance } from "../../support/conformance.ts";
import { startNacos } from "../../support/nacos-simulator/simulator.ts";

describe.concurrent("the driver for Nacos 3 passes the conformance suite:", () => {
  wholeConformance({ test, open: () => openPair({ servers: 2 }) });
});

describe.concurrent("the driver for the embedded database of Nacos 2 passes the conformance suite:", () => {
  clientConformance({ test, open: () => openPair({ servers: 2, embedded: true, version: "2.4.3" }) });
});

/** Two drivers, each with a server of its own cluster first. */
async function openPair(options: Parameters<typeof startNacos>[0]): Promise<{
  driver: ReturnType<typeof nacos>;
  other: ReturnType<typeof nacos>;
  cleanup: () => Promise<void>;
}> {
  const { urls, stop } = await startNacos(options);
  return { driver: nacos(urls, patient), other: nacos(urls.toReversed(), patient), cleanup: stop };
}
