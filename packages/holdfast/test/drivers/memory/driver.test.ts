import { memory } from "holdfast/memory";
import { describe, test } from "vitest";
import { wholeConformance } from "../../support/conformance.ts";

describe.concurrent("the driver in memory passes the conformance suite:", () => {
  wholeConformance({ test, open: async () => ({ driver: memory() }) });
});
