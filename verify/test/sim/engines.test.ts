import { testSchedules } from "./schedules.ts";

// These seeds have their own file, because the test runner runs two files at a time.
testSchedules(501, 500);
