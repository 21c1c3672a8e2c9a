import { testSchedules } from "./sim-schedules.ts";

testSchedules(1, 500);
