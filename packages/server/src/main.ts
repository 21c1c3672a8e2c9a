import { readFile } from "node:fs/promises";

import { newToken } from "./auth.ts";
import { jsonLines } from "./log.ts";
import type { ServiceOptions } from "./options.ts";
import { createService, type Service } from "./service.ts";
import { startupMessage } from "./banner.ts";

const help = `The lock service. Its settings are environment variables:

  HOLDFAST_URL           the engine, as holdfast/connect reads it (memory:)
  HOLDFAST_HOST          where to listen (127.0.0.1)
  HOLDFAST_PORT          0: any (7420)
  HOLDFAST_AUTH_FILE     who may come in: JSON, see docs/service.md
  HOLDFAST_MAX_WAIT_MS   the longest that an answer is held back (60000)
  HOLDFAST_RATE          requests of one principal in a second (no bound)
  HOLDFAST_LEASE_KEY     signs lease ids, the same for all instances (unsigned)
  HOLDFAST_DRAIN_MS      how long to wait for what is open at the end (10000)
  HOLDFAST_GROUPS        prefixes of keys that metrics tell apart, with commas
  HOLDFAST_LOG           debug: log every refusal too

  --new-token            print a new bearer token, and what the auth file says of it
`;

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    process.stdout.write(help);
  } else if (args.includes("--new-token")) {
    const { token, sha256 } = newToken();
    process.stdout.write(`token   ${token}\nsha256  ${sha256}\n`);
  } else {
    await serve();
  }
}

async function serve(): Promise<void> {
  try {
    const { HOLDFAST_HOST: host, HOLDFAST_PORT: port } = process.env;
    const service = await createService(await optionsOf(process.env));
    endAtSignals(service);
    const url = await service.listen({
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port: numberOf("HOLDFAST_PORT", port) }),
    });
    process.stdout.write(startupMessage(url, service.guarantee));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 78;
  }
}

/** The first signal drains, the second ends it at once. */
function endAtSignals(service: Service): void {
  let isEnding = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (isEnding) {
        process.exit(1);
      }
      isEnding = true;
      service.close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}

async function optionsOf(env: NodeJS.ProcessEnv): Promise<ServiceOptions> {
  const read = (name: string): number | undefined =>
    env[name] === undefined ? undefined : numberOf(name, env[name]);
  return {
    engine: env["HOLDFAST_URL"],
    auth: await authOf(env["HOLDFAST_AUTH_FILE"]),
    maxWaitMs: read("HOLDFAST_MAX_WAIT_MS"),
    requestsPerSecond: read("HOLDFAST_RATE"),
    leaseKey: env["HOLDFAST_LEASE_KEY"],
    drainMs: read("HOLDFAST_DRAIN_MS"),
    groups: env["HOLDFAST_GROUPS"]?.split(",").filter(Boolean),
    log: jsonLines((line) => process.stderr.write(line), env["HOLDFAST_LOG"] === "debug"),
  };
}

async function authOf(file: string | undefined): Promise<ServiceOptions["auth"]> {
  return file === undefined
    ? undefined
    : (JSON.parse(await readFile(file, "utf8")) as NonNullable<ServiceOptions["auth"]>);
}

function numberOf(name: string, text: string): number {
  if (!/^\d+$/.test(text)) {
    throw new TypeError(`Expected ${name} to be a whole number, got ${JSON.stringify(text)}`);
  }
  return Number(text);
}
