import type { Service, ServiceOptions } from "@holdfast/server";

import { urlFromOptions, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { exitCodeOfSignal, Signals } from "../signals.ts";
import { errorMessage, type Output } from "../output.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ServeOptions {
  readonly target: Target;
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly authFile: string | undefined;
  /** The settings of flags. Variables of the environment have the other ones. */
  readonly settings: ServiceOptions;
  readonly logsAll: boolean;
  readonly onlyChecks: boolean;
}

/** Runs the lock service until a signal. The first signal drains the service, and the second ends it at once. */
export async function serve(options: ServeOptions): Promise<number> {
  const { host = "127.0.0.1", port = 7_420, authFile, settings } = await withEnvironment(options);
  const service = await open(options.target, settings, authFile);
  if (options.onlyChecks) {
    await check(service, host);
    process.stdout.write(`the settings are valid; the guarantee is ${service.guarantee}\n`);
    return exitCodes.done;
  }
  const { followAuthFile } = await import("@holdfast/server");
  const follows = authFile === undefined ? undefined : followAuthFile(service, authFile, settings.log);
  const start = async (): Promise<void> => {
    const url = await listen(service, { host, port });
    const hasReader = process.stdout.isTTY && settings.console !== false; // a script expects the address alone
    process.stdout.write(`${url}\n${hasReader ? `web console: ${url}/console/\n` : ""}`);
  };
  try {
    return await untilSignal(service, start, follows !== undefined);
  } finally {
    follows?.();
  }
}

/** Adds the settings of the environment. A flag takes precedence. @throws {Exit} with the exit code 78 for invalid settings */
async function withEnvironment(flags: ServeOptions): Promise<ServeOptions> {
  const { environmentSettings, jsonLines } = await import("@holdfast/server");
  const authFile = flags.authFile ?? process.env["HOLDFAST_AUTH_FILE"];
  try {
    const { host, port, options } = environmentSettings({ ...process.env, HOLDFAST_AUTH_FILE: authFile });
    const given = Object.entries(flags.settings).filter(([, value]) => value !== undefined);
    const settings: ServiceOptions = {
      ...options,
      ...Object.fromEntries(given),
      ...(flags.logsAll && { log: jsonLines((line) => process.stderr.write(line), true) }),
      ...(flags.onlyChecks && { log: undefined }),
    };
    return { ...flags, host: flags.host ?? host, port: flags.port ?? port, authFile, settings };
  } catch (error) {
    throw new Exit(exitCodes.config, errorMessage(error), error);
  }
}

/**
 * Starts the service, and closes it at a signal.
 * @param ignoresHangup whether SIGHUP has another meaning
 * @returns the exit code of the signal
 */
export async function untilSignal(
  service: Service,
  start: () => Promise<void>,
  ignoresHangup = false,
): Promise<number> {
  using signals = new Signals(ignoresHangup);
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
export async function open(target: Target, options: ServiceOptions, authFile?: string): Promise<Service> {
  const { createService } = await import("@holdfast/server");
  try {
    return await createService({ ...options, engine: urlFromOptions(target) });
  } catch (error) {
    throw new Exit(exitCodes.config, messageOf(error, authFile), error);
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
