import { memory } from "holdfast/memory";
import { driverConformance } from "holdfast/testing";
import { test } from "vitest";

driverConformance({ test, open: async () => ({ driver: memory() }) });
