import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

import type { Driver, Locks } from "holdfast";

import { Exit, exitCodes } from "./exit.ts";

/** The options that name the engine. */
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
 * Opens the engine that the flags or `HOLDFAST_URL` name, without waiting for its servers. The engine's code is loaded only here.
 * @throws {Exit} without a URL, or for a URL of an engine inside this process
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
      "memory: exists only inside this process, and would exclude no other process; name a server or a service",
    );
  }
  return { driver, owner, locks: createLocks(driver, { owner, handover: false, closeTimeoutMs }) };
}

/** The limit for releases at the end, ms, because a person waits. A lock without a release ends with its TTL. */
const closeTimeoutMs = 1_000;

/** The client library's message for the last failed connection; undefined without a failure. */
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

/** The token of a service, if the URL has none. Other engines do not use it. */
function secretOf(url: string): { password?: string } {
  const token = process.env["HOLDFAST_TOKEN"];
  return token !== undefined && token !== "" && /^https?:\/\/[^@]*$/i.test(url) ? { password: token } : {};
}

/**
 * The URL of the flags, or of the environment.
 * @throws {Exit} without a URL
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

/** The URL of the flags, or of the environment; undefined without one. */
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
    throw new Exit(exitCodes.config, `cannot read the file with the URL: ${(error as Error).message}`, error);
  }
}

/** The default owner of a lease: user, host and process. */
export function defaultOwner(): string {
  return `${defaultUser()}:${process.pid}`;
}

/** The owner of a lock that outlives its process: user and host. */
export function defaultUser(): string {
  const user = process.env["USER"] ?? process.env["LOGNAME"] ?? process.env["USERNAME"] ?? "holdfast";
  return `${user === "" ? "holdfast" : user}@${hostname()}`;
}

/** Turns the error of an invalid URL into an exit with a usage code. */
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
