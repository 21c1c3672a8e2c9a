import { followAuthFile } from "./auth-file.ts";
import { newTokenText } from "./auth.ts";
import { environmentSettings } from "./environment.ts";
import { createService, type Service } from "./service.ts";
import { startupMessage } from "./banner.ts";

const help = `The lock service. Its settings are environment variables:

  HOLDFAST_URL           the engine, a URL for holdfast/connect (memory:, on this machine only)
  HOLDFAST_HOST          the address to listen on (127.0.0.1)
  HOLDFAST_PORT          the port; 0: any free port (7420)
  HOLDFAST_AUTH_FILE     tokens and issuers as JSON, see docs/service.md; read again at each change, and on SIGHUP
  HOLDFAST_MAX_WAIT_MS   the longest wait for one response (60000)
  HOLDFAST_RATE          the limit of requests per second and principal (no limit)
  HOLDFAST_LEASE_KEY     the signing key of lease ids, the same for all instances (unsigned)
  HOLDFAST_LEASE_KEY_OLD another key whose lease ids are valid, while the key is changed (none)
  HOLDFAST_MAX_WAITS     the limit of open waits of one principal (20000 on Redis, else 1000)
  HOLDFAST_MAX_WAITS_OF_KEY  the same for one key (500)
  HOLDFAST_MAX_LEASES    the limit of keys that one principal holds (1000)
  HOLDFAST_DRAIN_MS      how long to wait for open requests at the end (10000)
  HOLDFAST_GROUPS        key prefixes that are groups of the metrics, separated by commas
  HOLDFAST_CONSOLE       off: no web console (on)
  HOLDFAST_READ_ONLY     on: refuse every change of a lock (off)
  HOLDFAST_ORIGINS       origins of web pages that may use the service, separated by commas (none)
  HOLDFAST_LOG           debug: also log every refusal

  --new-token            print a new bearer token, its hash, and an example entry of the auth file
`;

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    process.stdout.write(help);
  } else if (args.includes("--new-token")) {
    process.stdout.write(newTokenText());
  } else {
    await serve();
  }
}

async function serve(): Promise<void> {
  try {
    const { host, port, authFile, options } = environmentSettings(process.env);
    const service = await createService(options);
    endAtSignals(service);
    if (authFile !== undefined) {
      followAuthFile(service, authFile, options.log);
    }
    const url = await service.listen({
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
    });
    process.stdout.write(
      startupMessage(url, {
        guarantee: service.guarantee,
        needsToken: options.auth !== undefined,
        hasConsole: options.console !== false,
      }),
    );
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
