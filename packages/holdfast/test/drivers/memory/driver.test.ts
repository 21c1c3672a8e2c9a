import { memory } from "holdfast/memory";
import { driverConformance } from "holdfast/testing";
import { describe, test } from "vitest";

describe.concurrent("the driver in memory passes the conformance suite:", () => {
  driverConformance({ test, open: async () => ({ driver: memory() }) });
});
