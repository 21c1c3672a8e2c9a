import { backoffMs } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import type { ResolvedOptions } from "./options.ts";

/** The events of one listening connection, which is opened again after a failure. */
interface ListeningEvents {
  /** The connection listens, for the first time or again. */
  readonly listening: () => void;
  /** Notifications no longer arrive. */
  readonly interrupted: () => void;
  readonly received: (payload: string) => void;
}

/** Opens a listening connection. @returns a function that closes the connection */
export type Listening = (
  channel: string,
  events: ListeningEvents,
  options: Pick<ResolvedOptions, "clock" | "random">,
) => () => void;

interface ListeningJsClient {
  listen(
    channel: string,
    received: (payload: string) => void,
    listening: () => void,
  ): Promise<{ readonly unlisten: () => Promise<void> }>;
}

interface ListeningPgClient {
  connect(): Promise<unknown>;
  query(sql: string): Promise<unknown>;
  on(event: "notification", listener: (message: { payload?: string | undefined }) => void): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  end(): Promise<void>;
}

interface PgPool {
  readonly options: object;
  readonly Client: new (options: object) => ListeningPgClient;
}

/** How a client listens. @throws {TypeError} if it cannot */
export function listeningOf(client: unknown): Listening {
  const shape = client as Partial<ListeningJsClient & PgPool>;
  if (typeof shape.listen === "function") {
    return (channel, events) => listenByPostgresJs(shape as ListeningJsClient, channel, events);
  } else if (typeof shape.Client === "function" && typeof shape.options === "object") {
    return (channel, events, options) => listenByPg(shape as PgPool, channel, events, options);
  }
  throw new TypeError("Expected `listen` to be used with a Pool of pg or an instance of postgres");
}

/** postgres.js connects again on its own. */
function listenByPostgresJs(client: ListeningJsClient, channel: string, events: ListeningEvents): () => void {
  const listening = client.listen(channel, events.received, events.listening);
  listening.catch(() => undefined); // waiters poll
  return () => {
    listening.then(({ unlisten }) => unlisten()).catch(() => undefined);
  };
}

function listenByPg(
  { Client, options: connection }: PgPool,
  channel: string,
  events: ListeningEvents,
  { clock, random }: Pick<ResolvedOptions, "clock" | "random">,
): () => void {
  const stopped = new AbortController();
  let close: (() => void) | undefined;
  const once = async (): Promise<void> => {
    const client = new Client(connection);
    const ended = new Promise<void>((resolve) => {
      client.on("end", resolve);
      client.on("error", resolve);
    });
    client.on("notification", ({ payload = "" }) => events.received(payload));
    close = () => void client.end().catch(() => undefined);
    await client.connect();
    await client.query(`LISTEN "${channel}"`);
    if (!stopped.signal.aborted) {
      events.listening();
      await ended;
      events.interrupted();
    }
    close();
  };
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopped.signal.aborted; failures += 1) {
      await once().then(
        () => (failures = 0),
        () => close?.(),
      );
      await pause(clock, backoffMs(random, failures), false, stopped.signal);
    }
  };
  void run();
  return () => {
    stopped.abort();
    close?.();
  };
}
