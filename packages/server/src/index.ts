export {
  newToken,
  newTokenText,
  type AuthOptions,
  type Grants,
  type JwtIssuer,
  type TokenEntry,
} from "./auth.ts";
export { followAuthFile } from "./auth-file.ts";
export type { App } from "./context.ts";
export { environmentSettings, type EnvironmentSettings } from "./environment.ts";
export { jsonLines, type Log, type LogEntry } from "./log.ts";
export type { Diagnosis, Finding } from "./doctor/finding.ts";
export type { ServiceOptions } from "./options.ts";
export {
  consoleRoutes,
  type ConsoleRoutes,
  type ConsoleRoutesOptions,
  type ConsoleUser,
} from "./web-console/mount.ts";
export { createService, type Service } from "./service.ts";
