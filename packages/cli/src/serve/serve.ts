import { readFileSync } from "node:fs";

import type { Service, ServiceOptions } from "@holdfast/server";

import { urlFromOptions, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { exitCodeOfSignal, Signals } from "../signals.ts";
import { errorMessage } from "../output.ts";

export interface ServeOptions {
  readonly target: Target;
  readonly host: string;
  readonly port: number;
  readonly authFile: string | undefined;
  readonly maxWaitMs: number;
  readonly drainMs: number;
  readonly requestsPerSecond: number | undefined;
  readonly groups: readonly string[] | undefined;
  readonly onlyChecks: boolean;
  readonly logsAll: boolean;
}

/** Runs the lock service until a signal. The first signal drains the service, and the second ends it at once. */
export async function serve(options: ServeOptions): Promise<number> {
  using signals = new Signals();
  const service = await open(options);
  try {
    if (options.onlyChecks) {
      process.stdout.write(`the settings are valid; the guarantee is ${service.guarantee}\n`);
      return exitCodes.done;
    }
    const url = await listen(service, options);
    process.stdout.write(`${url}\n`);
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

async function open(options: ServeOptions): Promise<Service> {
  const { createService, jsonLines } = await import("@holdfast/server");
  const log = jsonLines((line) => process.stderr.write(line), options.logsAll);
  const { maxWaitMs, drainMs, requestsPerSecond, groups } = options;
  try {
    return await createService({
      engine: urlFromOptions(options.target),
      auth: authOf(options.authFile),
      maxWaitMs,
      drainMs,
      requestsPerSecond,
      leaseKey: process.env["HOLDFAST_LEASE_KEY"],
      groups,
      ...(!options.onlyChecks && { log }),
    });
  } catch (error) {
    throw new Exit(exitCodes.config, errorMessage(error), error);
  }
}

async function listen(service: Service, { host, port }: ServeOptions): Promise<string> {
  try {
    return await service.listen({ host, port });
  } catch (error) {
    throw new Exit(exitCodes.config, errorMessage(error), error);
  }
}

function authOf(file: string | undefined): ServiceOptions["auth"] {
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, "utf8")) as ServiceOptions["auth"]);
}
