import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

import { createAdaptorServer } from "@hono/node-server";
import type { Driver } from "holdfast";
import { NodeReader, observeNodes, observeTimerLag } from "holdfast/prometheus";

import { byToken, type Identify } from "./admission.ts";
import { createApp } from "./app.ts";
import { AttemptCache } from "./attempts.ts";
import { Authenticator, type AuthOptions } from "./auth.ts";
import { Connections } from "./connection.ts";
import { doctorOf } from "./doctor/of-engine.ts";
import { warningsOf } from "./doctor/of-service.ts";
import { Engine } from "./engine.ts";
import type { App, ServiceContext } from "./context.ts";
import { HeldKeys } from "./held-keys.ts";
import { LeaseIds } from "./lease-ids.ts";
import { Leases } from "./leases.ts";
import { limitsOf, RateLimit } from "./limits.ts";
import { Metrics } from "./meter.ts";
import { addNodeEvents, addRoles } from "./node-gauges.ts";
import { LockObservation } from "./observation/lock-observation.ts";
import { OwnerDirectory } from "./observation/owners.ts";
import { checkAuth, resolveService, type ResolvedService, type ServiceOptions } from "./options.ts";
import { revoked } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import { RefusalLog } from "./refusal-log.ts";
import { limits, rejectBadRequests } from "./server-limits.ts";
import { AcquireLease } from "./acquire-leases.ts";
import { PrincipalLimit, WaitLimits } from "./waits.ts";

export interface Service {
  readonly app: App;
  /** The guarantee of the engine. `process`: no other instance can share the locks. */
  readonly guarantee: Driver["capabilities"]["guarantee"];
  /**
   * Checks that `listen` accepts the host.
   * @throws {Error} for an address that other machines can reach: without authentication, and without an engine in the options, because
   * another instance would then have locks of its own
   */
  assertHost(host: string): void;
  /**
   * @param options by default 127.0.0.1:7420; port 0: any free port
   * @returns the address of the service
   * Rejects for an address that `assertHost` refuses.
   */
  listen(options?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /**
   * Replaces the tokens and issuers. Streams and waits whose token is no longer known, or has other grants, end at once with
   * `unauthenticated`. Their leases stay held until they are released by another token, or expire.
   * @returns how many requests were ended
   * @throws {TypeError} for invalid tokens or issuers, and for a service without authentication
   */
  replaceAuth(auth: AuthOptions): number;
  /**
   * Refuses new requests, ends waits, and resolves when all requests are answered or `drainMs` have passed. Renewals and releases still
   * succeed.
   */
  drain(): Promise<void>;
  /** Stops the service. Held leases stay held until another instance releases them, or they expire. */
  close(): Promise<void>;
}

/** Creates a lock service on one engine. Rejects like `connect`. */
export async function createService(options: ServiceOptions = {}): Promise<Service> {
  const resolved = resolveService(options);
  return new HttpService(resolved, await Engine.open(resolved.engine ?? "memory:"));
}

/** The access to a service by the means of an application. */
interface Access {
  readonly identify: Identify;
  readonly hasAuthentication: boolean;
}

export class HttpService implements Service {
  readonly app: App;
  readonly #options: ResolvedService;
  readonly #context: ServiceContext;
  readonly #draining = new AbortController();
  readonly #authenticator: Authenticator | undefined;
  #auth: AuthOptions | undefined;
  readonly #stopMetrics: (() => void)[];
  #server: Server | undefined;
  #closing: Promise<void> | undefined;

  /** @param access by default by the tokens of the options */
  constructor(options: ResolvedService, engine: Engine, access?: Access) {
    const { guarantee } = engine;
    const limits = limitsOf(options, engine);
    const waitLimits = new WaitLimits(limits.waits, limits.waitsOfKey ?? Infinity);
    const streams = new PrincipalLimit(options.maxStreamsOfOne, "open event streams");
    const metrics = new Metrics({
      engine: engine.driver.capabilities.engine ?? "other",
      guarantee,
      groups: options.groups,
      waiters: () => waitLimits.open,
      streams: () => streams.count,
    });
    const nodes = new NodeReader([engine.locks]);
    observeNodes(metrics.recorder, nodes);
    addRoles(metrics.registry, nodes);
    this.#stopMetrics = [observeTimerLag(metrics.recorder), addNodeEvents(metrics.registry)];
    engine.onLoss = (token, reason) => {
      metrics.lost(token, reason);
    };
    const leaseIds = new LeaseIds(options.leaseKey, options.oldLeaseKey);
    this.#options = options;
    this.#auth = options.auth;
    this.#authenticator = options.auth && new Authenticator(options.auth);
    const held = heldKeys(limits.leases, engine, metrics);
    const leases = new Leases(engine, new AcquireLease(engine, waitLimits), metrics, leaseIds, held);
    const attempts = new AttemptCache(leases, leaseIds, waitLimits);
    metrics.onLeaseEnded = (grant, end) => {
      held.ended(grant);
      if (end !== "unrenewed") {
        attempts.grantEnded(grant.token);
      }
    };
    const observation = new LockObservation(engine.locks);
    this.#context = {
      engine,
      observation,
      owners: new OwnerDirectory(engine.locks, observation),
      waitLimits,
      streams,
      metrics,
      leases,
      attempts,
      leaseIds,
      limits,
      rate: options.requestsPerSecond === undefined ? undefined : new RateLimit(options.requestsPerSecond),
      log: options.log,
      refusals: new RefusalLog(options.log),
      connections: new Connections(),
      draining: this.#draining.signal,
      maxWaitMs: options.maxWaitMs,
      readOnly: options.readOnly,
      doctor: options.doctor ?? doctorOf(options.engine ?? "memory:", engine.driver),
      warnings: () => warningsOf({ ...options, auth: this.#auth }),
      hasAuthentication: access?.hasAuthentication ?? options.auth !== undefined,
    };
    const identify = access?.identify ?? byToken(this.#authenticator, options.allowedOrigins);
    this.app = createApp(this.#context, options, identify);
  }

  get guarantee(): Driver["capabilities"]["guarantee"] {
    return this.#context.engine.guarantee;
  }

  assertHost(host: string): void {
    if (/^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)) {
      return;
    }
    if (!this.#options.auth) {
      throw new Error(
        `Without authentication the service listens on loopback only, not on ${host}: give it tokens or JWT issuers`,
      );
    }
    if (this.#options.engine === undefined) {
      throw new Error(
        `Without an engine the service listens on loopback only, not on ${host}, because its locks are those of one process: ` +
          "give it the URL of an engine (HOLDFAST_URL), or memory: if there is only one instance",
      );
    }
  }

  replaceAuth(auth: AuthOptions): number {
    const authenticator = this.#authenticator;
    if (!authenticator) {
      throw new TypeError("Expected a service with authentication");
    }
    const hadWarnings = this.#context.warnings().length > 0;
    const checked = checkAuth(auth);
    authenticator.replace(checked);
    this.#auth = checked;
    if (!hadWarnings) {
      this.#warn();
    }
    return this.#context.connections.endOf(({ isCurrent }) => isCurrent?.() === false, revoked());
  }

  async listen({ host = "127.0.0.1", port = 7420 }: { host?: string; port?: number } = {}): Promise<string> {
    this.assertHost(host);
    const server = createAdaptorServer({ fetch: this.app.fetch, serverOptions: limits }) as Server;
    this.#server = server;
    server.keepAliveTimeout = 65_000;
    server.maxConnections = this.#options.maxConnections;
    rejectBadRequests(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port, host, backlog: 4_096 }, resolve);
    });
    const { address, family, port: bound } = server.address() as AddressInfo;
    const url = `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`;
    this.#options.log({
      level: "info",
      event: "listening",
      url,
      ...(this.#options.console && { console: `${url}/console/` }),
      guarantee: this.guarantee,
      leaseIds: this.#context.leaseIds.isSigned ? "signed" : "unsigned",
    });
    this.#warn();
    return url;
  }

  #warn(): void {
    for (const { id, observed, fix } of this.#context.warnings()) {
      this.#options.log({ level: "warn", event: id, observed, fix });
    }
  }

  async drain(): Promise<void> {
    const { connections, log } = this.#context;
    if (!this.#draining.signal.aborted) {
      log({ level: "info", event: "draining", open: connections.count });
      const refusal = new ServiceError("draining", "The service is shutting down; use another instance", {
        retryAfterMs: 0,
      });
      this.#draining.abort(refusal);
      connections.endOf(() => true, refusal);
    }
    const end = performance.now() + this.#options.drainMs;
    while (connections.count > 0 && performance.now() < end) {
      await connections.changed(end - performance.now());
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.drain();
    const server = this.#server;
    const closed = server?.listening === true && new Promise((resolve) => server.close(resolve));
    server?.closeAllConnections();
    await closed;
    this.#context.observation.close();
    await this.#context.engine.close();
    this.#context.metrics.close();
    for (const stopped of this.#stopMetrics) {
      stopped();
    }
    this.#options.log({ level: "info", event: "ended" });
  }
}

function heldKeys(max: number | null, { locks }: Engine, metrics: Metrics): HeldKeys {
  return new HeldKeys(max ?? Infinity, async (key, fencingToken) => {
    const hasEnded = (await locks.checkFence(key, fencingToken)) === "stale";
    if (hasEnded) {
      metrics.endedElsewhere({ key, fencingToken: fencingToken.toString() });
    }
    return hasEnded;
  });
}
