import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";

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
  const { url, source } = locate(target);
  subscribe("holdfast:node", recordFailure);
  const [{ createLocks }, { connect }] = await Promise.all([import("holdfast"), import("holdfast/connect")]);
  const driver = await asExit(source, url, async () => connect(url, secretOf(url)));
  try {
    if (driver.capabilities.guarantee === "process") {
      throw new Exit(
        exitCodes.config,
        "memory: exists only inside this process, and would exclude no other process; name a server or a service",
      );
    }
    return { driver, owner, locks: createLocks(driver, { owner, handover: false, closeTimeoutMs }) };
  } catch (error) {
    await driver.close(); // an open connection would keep this process alive
    throw error;
  }
}

/** The limit for releases at the end, ms, because a person waits. A lock without a release ends with its TTL. */
const closeTimeoutMs = 1_000;

/** A failed connection: its server, and the message of the client library. */
interface ConnectionFailure {
  readonly node: string;
  readonly reason: string;
}

/** The last failed connection; undefined without a failure. */
export function lastFailure(): ConnectionFailure | undefined {
  return failure;
}

let failure: ConnectionFailure | undefined;

function recordFailure(message: unknown): void {
  const { event, node, detail } = message as { event: string; node: string; detail?: unknown };
  if (event === "connection-failed") {
    failure = { node, reason: String(detail) };
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
export function urlOf(target: Target): string {
  return locate(target).url;
}

/** The URL of the flags, or of the environment; undefined without one. */
export function urlFromOptions(target: Target): string | undefined {
  return find(target)?.url;
}

/** A URL, and the name of the flag or variable that it comes from. */
interface Location {
  readonly url: string;
  readonly source: "--url" | "HOLDFAST_URL" | "the URL of the file";
}

function locate(target: Target): Location {
  const location = find(target);
  if (location === undefined) {
    throw new Exit(
      exitCodes.config,
      "no engine is named; set HOLDFAST_URL, for instance to redis://127.0.0.1:6379, or give --url or --url-file",
    );
  }
  return location;
}

/** @throws {Exit} for an empty variable, which may come from a variable that was not set in a container's configuration */
function find({ url, urlFile }: Target): Location | undefined {
  const { HOLDFAST_URL: fromEnvironment, HOLDFAST_URL_FILE: fileFromEnvironment } = process.env;
  if (url !== undefined) {
    return { url, source: "--url" };
  } else if (urlFile !== undefined) {
    return readUrl(urlFile);
  } else if (fromEnvironment !== undefined && fromEnvironment !== "") {
    return { url: fromEnvironment, source: "HOLDFAST_URL" };
  }
  if (fileFromEnvironment === undefined && fromEnvironment === "") {
    throw new Exit(exitCodes.config, "HOLDFAST_URL is empty; set it to the URL of an engine, or unset it");
  }
  return fileFromEnvironment === undefined ? undefined : readUrl(fileFromEnvironment);
}

/** @throws {Exit} if the file cannot be read */
function readUrl(urlFile: string): Location {
  try {
    return { url: readFileSync(urlFile, "utf8").trim(), source: "the URL of the file" };
  } catch (error) {
    throw new Exit(exitCodes.config, `cannot read the file with the URL: ${(error as Error).message}`, error);
  }
}

/** Names the flag or variable of an invalid URL. A host and port without a scheme contain no secret. */
async function asExit<T>(source: Location["source"], url: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    const isAddress = /^([\w-]+(\.[\w-]+)*|\[[\da-f:]+\]):\d{1,5}$/i.test(url);
    const hint = isAddress ? `; for a Redis server write redis://${url}` : "";
    const message = error.message.replace(/^Expected (`url`|the URL\b)/, `expected ${source}`);
    throw new Exit(source === "--url" ? exitCodes.usage : exitCodes.config, `${message}${hint}`, error);
  }
}

/** The default owner of a lease: user, host and process. */
export function defaultOwner(): string {
  return `${defaultUser()}:${process.pid}`;
}

/** The owner of a lock that outlives its process: user and host. */
export function defaultUser(): string {
  const { USER, LOGNAME, USERNAME } = process.env;
  const user = [USER, LOGNAME, USERNAME].find((name) => name !== undefined && name !== "");
  return `${user ?? accountName()}@${hostname()}`;
}

/** The name of the account of this process. Jobs of cron and containers have no `USER`, and an account may have no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}
