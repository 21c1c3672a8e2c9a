export { watchdogThread, type WatchdogThreadOptions } from "./watchdog-thread.ts";
export type { RenewalBackup, RenewalBackupStarter, BackedLease } from "../lease/watchdog.ts";
