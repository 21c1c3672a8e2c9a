import type { Driver } from "holdfast";
import { memory } from "holdfast/memory";

import { UsageError, withoutPassword, type Options } from "./options.ts";
import { installedVersion, serverVersion, startServer } from "./server.ts";

export type Engine = AsyncDisposable & {
  /** The engine, its place, its workers, and the reason for the choice. */
  readonly description: string;
  /** Aborted if the engine ends too early, so that no worker waits for a reply. */
  readonly lost?: AbortSignal;
} & ({ readonly kind: "redis"; readonly url: string } | { readonly kind: "memory"; readonly driver: Driver });

/** Opens the engine that the user requested, else a private Redis server, else the memory driver. */
export async function openEngine(
  { engine, workers }: Options,
  folder: string,
  signal: AbortSignal,
): Promise<Engine> {
  if (engine === "memory") return memoryEngine(workers, "because of --memory");
  if (typeof engine === "object") return givenServer(engine.url, workers);
  const installed = await installedVersion();
  if (installed === null) return memoryEngine(workers, "because no redis-server was found on the PATH");
  return privateServer(workers, folder, signal);
}

function memoryEngine(workers: number, why: string): Engine {
  const description = `the memory driver inside this one process, with ${workers} workers in it, ${why}`;
  return { kind: "memory", driver: memory(), description, [Symbol.asyncDispose]: async () => undefined };
}

async function givenServer(url: string, workers: number): Promise<Engine> {
  const shown = withoutPassword(url);
  try {
    const description = `Redis ${await serverVersion(url)} at ${shown}, with ${workers} processes, because of --redis`;
    return { kind: "redis", url, description, [Symbol.asyncDispose]: async () => undefined };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Expected \`--redis\` to be the URL of a running server, got "${shown}" (${why})`, {
      cause: error,
    });
  }
}

async function privateServer(workers: number, folder: string, signal: AbortSignal): Promise<Engine> {
  const server = await startServer(folder, signal);
  const { url, lost } = server;
  const description =
    `a private redis-server ${server.version} on 127.0.0.1:${server.port}, with ${workers} processes,` +
    " because redis-server is installed";
  return {
    kind: "redis",
    url,
    lost,
    description,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
