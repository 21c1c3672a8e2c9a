import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

import type { Driver, Locks } from "holdfast";

import { Exit, exitCodes } from "./exit.ts";

/** Where the locks are. */
export interface Target {
  readonly url?: string | undefined;
  readonly urlFile?: string | undefined;
}

export interface Engine {
  readonly locks: Locks;
  readonly driver: Driver;
  readonly owner: string;
}

/**
 * Opens what the flags or `HOLDFAST_URL` lead to. It does not wait for the servers. Nothing of an engine is loaded before.
 * @throws {Exit} where no URL is given, or one that means only this process
 */
export async function openEngine(target: Target, owner: string = defaultOwner()): Promise<Engine> {
  const url = await urlOf(target);
  subscribe("holdfast:node", recordFailure);
  const [{ createLocks }, { connect }] = await Promise.all([import("holdfast"), import("holdfast/connect")]);
  const driver = await asUsageError(target.url === undefined ? exitCodes.config : exitCodes.usage, () =>
    connect(url, secretOf(url)),
  );
  if (driver.capabilities.guarantee === "process") {
    throw new Exit(
      exitCodes.config,
      "memory: is this process only, and would lock nothing; name a server or a service",
    );
  }
  return { driver, owner, locks: createLocks(driver, { owner, handover: false, closeTimeoutMs }) };
}

/** What could not be given back by then ends with its TTL: a person waits for us. */
const closeTimeoutMs = 1_000;

/** Why the engine could last not be reached, in the client's words; undefined: no connection has failed. */
export function lastFailure(): string | undefined {
  return failure;
}

let failure: string | undefined;

function recordFailure(message: unknown): void {
  const { event, node, detail } = message as { event: string; node: string; detail?: unknown };
  if (event === "connection-failed") {
    failure = `${node}: ${String(detail)}`;
  }
}

/** The token of a service, where it does not stand in the URL: of no use to other engines. */
function secretOf(url: string): { password?: string } {
  const token = process.env["HOLDFAST_TOKEN"];
  return token !== undefined && token !== "" && /^https?:\/\/[^@]*$/i.test(url) ? { password: token } : {};
}

/**
 * The URL of the flags, or of the environment.
 * @throws {Exit} where there is none
 */
export async function urlOf(target: Target): Promise<string> {
  const url = await urlFromOptions(target);
  if (url === undefined) {
    throw new Exit(
      exitCodes.config,
      "no engine is named; set HOLDFAST_URL, for instance to redis://127.0.0.1:6379, or give --url or --url-file",
    );
  }
  return url;
}

/** The same, or undefined. */
export async function urlFromOptions({
  url,
  urlFile = process.env["HOLDFAST_URL_FILE"],
}: Target): Promise<string | undefined> {
  if (url !== undefined) {
    return url;
  }
  const fromEnvironment = process.env["HOLDFAST_URL"];
  if (fromEnvironment !== undefined && fromEnvironment !== "") {
    return fromEnvironment;
  }
  if (urlFile === undefined) {
    return undefined;
  }
  try {
    return readFileSync(urlFile, "utf8").trim();
  } catch (error) {
    throw new Exit(
      exitCodes.config,
      `the file with the URL cannot be read: ${(error as Error).message}`,
      error,
    );
  }
}

/** Who we are where nobody says otherwise: user, host, process. */
export function defaultOwner(): string {
  return `${defaultUser()}:${process.pid}`;
}

/** User and host: who holds a lock longer than a process lives. */
export function defaultUser(): string {
  const user = process.env["USER"] ?? process.env["LOGNAME"] ?? process.env["USERNAME"] ?? "holdfast";
  return `${user === "" ? "holdfast" : user}@${hostname()}`;
}

/** A URL that is not understood is the user's mistake, or the environment's. */
async function asUsageError<T>(code: number, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new Exit(code, error.message, error);
    }
    throw error;
  }
}
