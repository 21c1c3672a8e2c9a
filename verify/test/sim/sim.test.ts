import { testSchedules } from "./schedules.ts";

testSchedules(1, 500);
