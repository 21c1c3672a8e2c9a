import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { Database } from "./database.ts";
import { Faults } from "./faults.ts";
import { handle, type RouteContext, type RouteRequest } from "./routes.ts";

export interface SimulatorOptions {
  /** How many servers share the database. @defaultValue 1 */
  readonly servers?: number;
  /** @defaultValue "3.1.0" */
  readonly version?: string;
  /** Whether the servers keep their data in the embedded database. All servers but the first are its followers. @defaultValue false */
  readonly embedded?: boolean;
  /** The passwords by user. Without users every client has access. */
  readonly users?: Readonly<Record<string, string>>;
  /** @defaultValue "/nacos" */
  readonly contextPath?: string;
}

/** A simulated cluster of Nacos. */
export interface Simulator {
  readonly database: Database;
  readonly servers: readonly SimulatedServer[];
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

export async function startNacos(options: SimulatorOptions = {}): Promise<Simulator> {
  const database = new Database(options.embedded ?? false);
  const servers: SimulatedServer[] = [];
  for (let number = 0; number < (options.servers ?? 1); number += 1) {
    const server = new SimulatedServer(database, options, number > 0);
    await server.start();
    servers.push(server);
  }
  return {
    database,
    servers,
    urls: servers.map(({ url }) => url),
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  };
}

/** One simulated server. Its database survives a stop. */
export class SimulatedServer {
  readonly faults = new Faults();
  /** The requests that arrived, as `METHOD /path`. */
  readonly requests: string[] = [];
  /** The tokens of logins. A removed token has expired. */
  readonly tokens = new Set<string>();
  /** The wall clock of the server minus the clock of this process, ms; null: the server reports no time. */
  clockOffsetMs: number | null = 0;
  /** Overrides the version after an upgrade. */
  version: string;
  readonly #options: SimulatorOptions;
  readonly #database: Database;
  readonly #isFollower: boolean;
  #server: Server | undefined;
  #port = 0;
  #frozen: Promise<void> | undefined;
  #thaw: () => void = () => undefined;

  constructor(database: Database, options: SimulatorOptions, isSecond: boolean) {
    this.#database = database;
    this.#options = options;
    this.#isFollower = isSecond && database.isEmbedded;
    this.version = options.version ?? "3.1.0";
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts the server, after a stop on its former port. */
  async start(): Promise<void> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => request.socket.destroy());
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Ends the server and all connections. */
  async stop(): Promise<void> {
    this.thaw();
    this.faults.letGo();
    const server = this.#server;
    this.#server = undefined;
    if (server) {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    }
  }

  /** Requests get no reply until `thaw`. They are executed then. */
  freeze(): void {
    this.#frozen ??= new Promise((thaw) => (this.#thaw = thaw));
  }

  thaw(): void {
    this.#thaw();
    this.#frozen = undefined;
  }

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await this.#parse(message);
    if (request === undefined) {
      response.writeHead(404).end();
      return;
    }
    this.requests.push(`${request.method} ${request.path}`);
    await this.#frozen;
    const fault = this.faults.next(request);
    if (fault === "cut") {
      message.socket.destroy();
      return;
    } else if (fault === "failed") {
      this.#reply(response, 500, { code: 30_000, message: "server error", data: "simulated" });
      return;
    } else if (fault === "held" || fault === "held-lost") {
      await this.faults.untilLetGo();
    }
    const { status, body } = handle(request, this.#context());
    if (fault === "lost" || fault === "held-lost") {
      message.socket.destroy();
    } else if (fault === "failed-late") {
      this.#reply(response, 500, { code: 30_000, message: "server error", data: "simulated" });
    } else {
      this.#reply(response, status, body);
    }
  }

  #context(): RouteContext {
    const { users, servers = 1 } = this.#options;
    return {
      database: this.#database,
      generation: this.version.startsWith("3.") ? 3 : 2,
      version: this.version,
      mode: servers > 1 ? "cluster" : "standalone",
      isFollower: this.#isFollower,
      users,
      tokens: this.tokens,
    };
  }

  #reply(response: ServerResponse, status: number, body: unknown): void {
    response.sendDate = false;
    const date =
      this.clockOffsetMs === null ? {} : { date: new Date(Date.now() + this.clockOffsetMs).toUTCString() };
    response.writeHead(status, { "content-type": "application/json;charset=UTF-8", ...date });
    response.end(body === undefined ? "" : JSON.stringify(body));
  }

  /** @returns undefined for another context path, a repeated parameter, or a body of another type */
  async #parse(message: IncomingMessage): Promise<RouteRequest | undefined> {
    const { pathname, searchParams } = new URL(message.url ?? "/", this.url);
    const { contextPath = "/nacos" } = this.#options;
    const method = String(message.method);
    const sources = [...searchParams, ...(await formIn(message))];
    const parameters: Record<string, string> = Object.fromEntries(sources);
    const isWellFormed =
      Object.keys(parameters).length === sources.length && hasBody(message) !== (method === "GET");
    if (!pathname.startsWith(`${contextPath}/`) || !isWellFormed) {
      return undefined;
    }
    const path = pathname.slice(contextPath.length);
    const [, token] = /^Bearer (.+)$/.exec(message.headers.authorization ?? "") ?? [];
    const casMd5 = message.headers["casmd5"]?.toString();
    return { method, path, parameters, token, casMd5, existed: this.#exists(parameters) };
  }

  #exists({ namespaceId = "", groupName, group = "", dataId = "" }: Record<string, string>): boolean {
    return this.#database.find(namespaceId, groupName ?? group, dataId) !== undefined;
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.startsWith("application/x-www-form-urlencoded") === true;
}

async function formIn(message: IncomingMessage): Promise<URLSearchParams> {
  let form = "";
  for await (const chunk of message) {
    form += String(chunk);
  }
  return new URLSearchParams(form);
}
