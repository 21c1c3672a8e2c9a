import { readAuthFile } from "./auth-file.ts";
import { jsonLines } from "./log.ts";
import type { ServiceOptions } from "./options.ts";

/** The settings of a service in environment variables. A variable that is not set has the value `undefined`. */
export interface EnvironmentSettings {
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** The file of `options.auth`. */
  readonly authFile: string | undefined;
  /** The log goes to the standard error. */
  readonly options: ServiceOptions;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables `HOLDFAST_*` and the auth file. @throws {TypeError} with the name of the variable, for an invalid value */
export function environmentSettings(env: Environment): EnvironmentSettings {
  const authFile = env["HOLDFAST_AUTH_FILE"];
  return {
    host: env["HOLDFAST_HOST"],
    port: numberOf(env, "HOLDFAST_PORT", 65_535),
    authFile,
    options: {
      engine: env["HOLDFAST_URL"],
      auth: authFile === undefined ? undefined : readAuthFile(authFile),
      maxWaitMs: numberOf(env, "HOLDFAST_MAX_WAIT_MS"),
      requestsPerSecond: numberOf(env, "HOLDFAST_RATE"),
      leaseKey: env["HOLDFAST_LEASE_KEY"],
      oldLeaseKey: env["HOLDFAST_LEASE_KEY_OLD"],
      maxWaitsOfOne: numberOf(env, "HOLDFAST_MAX_WAITS"),
      maxWaitsOfKey: numberOf(env, "HOLDFAST_MAX_WAITS_OF_KEY"),
      maxLeasesOfOne: numberOf(env, "HOLDFAST_MAX_LEASES"),
      drainMs: numberOf(env, "HOLDFAST_DRAIN_MS"),
      groups: listOf(env["HOLDFAST_GROUPS"]),
      console: switchOf(env, "HOLDFAST_CONSOLE"),
      readOnly: switchOf(env, "HOLDFAST_READ_ONLY"),
      allowedOrigins: listOf(env["HOLDFAST_ORIGINS"]),
      log: jsonLines((line) => process.stderr.write(line), isDebug(env)),
    },
  };
}

function listOf(text: string | undefined): string[] | undefined {
  return text?.split(",").filter(Boolean);
}

function switchOf(env: Environment, name: string): boolean | undefined {
  const value = env[name];
  if (value === undefined || value === "on" || value === "off") {
    return value === undefined ? undefined : value === "on";
  }
  throw new TypeError(`Expected ${name} to be on or off, got ${JSON.stringify(value)}`);
}

function isDebug({ HOLDFAST_LOG: value }: Environment): boolean {
  if (value !== undefined && value !== "debug") {
    throw new TypeError(`Expected HOLDFAST_LOG to be debug, got ${JSON.stringify(value)}`);
  }
  return value === "debug";
}

function numberOf(env: Environment, name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = env[name];
  if (text !== undefined && !(/^\d+$/.test(text) && Number(text) <= most)) {
    const limit = most === Number.MAX_SAFE_INTEGER ? "" : ` up to ${most}`;
    throw new TypeError(`Expected ${name} to be a whole number${limit}, got ${JSON.stringify(text)}`);
  }
  return text === undefined ? undefined : Number(text);
}
