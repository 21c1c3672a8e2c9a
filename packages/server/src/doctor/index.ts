export { acceptCounters, diagnose, type DiagnoseOptions } from "./diagnose.ts";
export { UnreachableError } from "./errors.ts";
export { isAtLeast, levels, type Diagnosis, type Finding, type Level, type Probe } from "./finding.ts";
