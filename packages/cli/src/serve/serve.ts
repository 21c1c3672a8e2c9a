import { readFileSync } from "node:fs";

import type { Service, ServiceOptions } from "@holdfast/server";

import { urlFromOptions, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { exitCodeOfSignal, Signals } from "../signals.ts";
import { errorMessage, type Output } from "../output.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

interface Settings {
  readonly target: Target;
  readonly authFile: string | undefined;
  readonly maxWaitMs: number | undefined;
  readonly drainMs: number;
  readonly requestsPerSecond: number | undefined;
  readonly groups: readonly string[] | undefined;
  readonly hasConsole?: boolean;
  readonly isReadOnly: boolean;
  /** Whether the log has all entries; undefined: there is no log. */
  readonly logsAll: boolean | undefined;
}

export interface ServeOptions extends Settings, Address {
  readonly onlyChecks: boolean;
}

/** Runs the lock service until a signal. The first signal drains the service, and the second ends it at once. */
export async function serve(options: ServeOptions): Promise<number> {
  const service = await open({ ...options, ...(options.onlyChecks && { logsAll: undefined }) });
  if (options.onlyChecks) {
    await check(service, options.host);
    process.stdout.write(`the settings are valid; the guarantee is ${service.guarantee}\n`);
    return exitCodes.done;
  }
  return untilSignal(service, async () => {
    const url = await listen(service, options);
    const hasReader = process.stdout.isTTY && options.hasConsole !== false; // a script expects the address alone
    process.stdout.write(`${url}\n${hasReader ? `web console: ${url}/console/\n` : ""}`);
  });
}

/** Starts the service, and closes it at a signal. @returns the exit code of the signal */
export async function untilSignal(service: Service, start: () => Promise<void>): Promise<number> {
  using signals = new Signals();
  try {
    await start();
    const { interrupted } = signals;
    await new Promise((resolve) => {
      interrupted.addEventListener("abort", resolve, { once: true });
      if (interrupted.aborted) resolve(undefined);
    });
  } finally {
    await service.close();
  }
  // A drained service has not failed.
  return signals.interruptedBy === "SIGTERM"
    ? exitCodes.done
    : exitCodeOfSignal(signals.interruptedBy ?? "SIGTERM");
}

/** Creates the service. @throws {Exit} with the exit code 78 for invalid settings */
export async function open(options: Settings): Promise<Service> {
  const { createService, jsonLines } = await import("@holdfast/server");
  const { maxWaitMs, drainMs, requestsPerSecond, groups, hasConsole, isReadOnly, logsAll } = options;
  try {
    return await createService({
      engine: urlFromOptions(options.target),
      auth: authOf(options.authFile),
      maxWaitMs,
      drainMs,
      requestsPerSecond,
      leaseKey: process.env["HOLDFAST_LEASE_KEY"],
      groups,
      console: hasConsole,
      readOnly: isReadOnly,
      ...(logsAll !== undefined && { log: jsonLines((line) => process.stderr.write(line), logsAll) }),
    });
  } catch (error) {
    throw new Exit(exitCodes.config, messageOf(error, options.authFile), error);
  }
}

/** @throws {Exit} with the exit code 78, as for a port in use */
export async function listen(service: Service, { host, port }: Address): Promise<string> {
  try {
    return await service.listen({ host, port });
  } catch (error) {
    throw notListening(error);
  }
}

/** Makes the check of `listen` for the host, and closes the service. @throws {Exit} with the exit code 78 */
async function check(service: Service, host: string): Promise<void> {
  try {
    service.assertHost(host);
  } catch (error) {
    throw notListening(error);
  } finally {
    await service.close();
  }
}

function notListening(error: unknown): Exit {
  const message = errorMessage(error).replace(
    /: give it tokens or JWT issuers$/,
    "; --auth-file names the tokens",
  );
  return new Exit(exitCodes.config, message, error);
}

/** Prints a new token for a client, its hash, and an example entry of the auth file. */
export async function printNewToken(voice: Output): Promise<void> {
  const { newTokenText } = await import("@holdfast/server");
  process.stdout.write(newTokenText());
  voice.info(
    'the client needs the token, which is stored nowhere; the entry belongs into "tokens" of the auth file, with your name and prefixes',
  );
}

function authOf(file: string | undefined): ServiceOptions["auth"] {
  if (file === undefined) {
    return undefined;
  }
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(`cannot read the auth file: ${errorMessage(error)}`, { cause: error });
  }
  try {
    return JSON.parse(text) as ServiceOptions["auth"];
  } catch (error) {
    throw new Error(`${file}: expected JSON: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * The service's message. Its fields of `auth` become fields of the auth file. The symbols of the message are not in the expression,
 * because the bundle is read as Latin-1.
 */
function messageOf(error: unknown, authFile: string | undefined): string {
  const message = errorMessage(error);
  const fields = [...message.matchAll(/^\W (.*)\n\W+at auth\.?(.*)$/gm)];
  return authFile === undefined || fields.length === 0
    ? message
    : fields
        .map(([, problem, field]) => `${authFile}: ${field === "" ? "" : `${field}: `}${problem}`)
        .join("\n");
}
