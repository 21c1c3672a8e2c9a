import { testSchedules } from "./schedules.ts";

// A file of its own: the test runner has two workers.
testSchedules(501, 500);
