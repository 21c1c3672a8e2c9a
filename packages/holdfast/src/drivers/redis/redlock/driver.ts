import { hostname } from "node:os";

import type { Clock } from "../../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  ListQuery,
  PendingAcquire,
  PendingRequeue,
  VerifyResult,
} from "../../../driver.ts";
import { LockError } from "../../../errors.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "../../../operator/audit.ts";
import type { Random } from "../../../runtime/random.ts";
import type { FenceState, Holder, LockEvent, LockState, NodeState } from "../../../lock-state.ts";
import { UnorderedSet } from "../../../runtime/unordered-set.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineExpiry } from "../../../validity.ts";
import type { Connection } from "../clients/connection.ts";
import { NodeSet } from "./node-set.ts";
import { KeySpace, type LockKeys } from "../protocol/keys.ts";
import { NodeEvents, type NodeEventsHost } from "./node-events.ts";
import type { RedlockSettings } from "../options.ts";
import { OperatorCalls } from "./inspect/operator-calls.ts";
import type { HeldGrant } from "./held-grant.ts";
import { GrantRegistry } from "./grant-registry.ts";
import { QuorumRelease } from "./release.ts";
import { extendGrant } from "./renewal.ts";
import { verifyGrant } from "./verification.ts";
import { type QuorumHost, QuorumRequest } from "./quorum-acquire.ts";
import { QuorumNode } from "./quorum-node.ts";
import { type DirectoryLink, RedisProcessDirectory } from "../processes/directory.ts";
import type { ProcessQuestion } from "../protocol/messages.ts";
import { processesScript } from "../protocol/scripts.generated.ts";
import { createToken } from "../protocol/token.ts";
import { PollingWatches } from "../../polling-watch.ts";
import { longestDelayMs } from "../server/server-clock.ts";
import { encodeMetadata } from "../protocol/metadata.ts";

/** Locks on a majority of independent Redis servers: Redlock, with a queue on every node. */
export class RedlockDriver implements Driver, QuorumHost<QuorumRequest>, NodeEventsHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly nodeSet: NodeSet;
  readonly timers: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  readonly grants: GrantRegistry;
  readonly processes: RedisProcessDirectory;
  readonly #keySpace: KeySpace;
  #clientId: string;
  readonly requests: UnorderedSet<QuorumRequest> = new UnorderedSet();
  readonly #operator: OperatorCalls;
  readonly #events = new NodeEvents(this);
  readonly #watches = new PollingWatches(this);

  constructor(settings: RedlockSettings, connections: readonly Connection[]) {
    const { clock, random, claimMs, prefix, maxTtlMs } = settings;
    this.clock = clock;
    this.random = random;
    this.commandTimeoutMs = settings.commandTimeoutMs;
    this.nodeTimeoutMs = settings.nodeTimeoutMs;
    this.claimMs = claimMs;
    this.driftFactor = settings.driftFactor;
    this.capabilities = {
      engine: "redlock",
      kinds: ["mutex", "read-write"],
      guarantee: "quorum",
      waiting: "notify",
      requeue: true,
      fencingBlocks: true,
      maxTtlMs,
      claimMs,
    };
    this.#clientId = random.id();
    this.#keySpace = new KeySpace(connections[0]?.keyPrefix ?? "", prefix, true);
    const nodes = connections.map(
      (connection, index) =>
        new QuorumNode({
          ...settings,
          connection,
          clientId: this.#clientId,
          index,
          listener: this.#events.listenerOf(index),
          healthChecked: () => {
            for (const request of Array.from(this.requests.items)) {
              request.recount();
            }
          },
          answered: (isNewRun) => this.nodeSet.answered(isNewRun),
        }),
    );
    this.nodeSet = new NodeSet(clock, nodes, settings);
    this.grants = new GrantRegistry({
      nodeSet: this.nodeSet,
      clock,
      driftFactor: settings.driftFactor,
      keptMs: Math.max(maxTtlMs, longestDelayMs(settings.commandTimeoutMs)),
      keySpace: this.#keySpace,
    });
    this.#operator = new OperatorCalls(this.nodeSet, this.#keySpace, this.commandTimeoutMs);
    this.timers = new TimerQueue(clock, (request) => request.timerDue(), true);
    this.processes = new RedisProcessDirectory({
      clock,
      random,
      links: () => nodes.map((node) => this.#linkOf(node)),
      clientId: () => this.#clientId,
    });
  }

  setOwner(owner: string): void {
    const since = String(Math.round(this.clock.wall()));
    for (const { server } of this.nodeSet.nodes) {
      server.setClientInfo(["owner", owner, "host", hostname(), "pid", String(process.pid), "since", since]);
    }
  }

  checkKey(key: string): void {
    this.#keySpace.keysOf(key);
  }

  ticket(): number | undefined {
    return this.nodeSet.isReady ? this.nodeSet.ticket() : undefined;
  }

  acquire(request: AcquireRequest): PendingAcquire {
    return this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key)));
  }

  requeue(given: Grant, request: AcquireRequest): PendingRequeue {
    const pending = this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key), true));
    return {
      result: pending.result,
      released: this.release(given.key, given.token, engineExpiry(given.validity)),
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async extend({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    const grant = this.grants.grantOf(key, token);
    this.grants.scheduleExpiry(grant, ttlMs);
    const refusal = grant.isKnown ? undefined : await this.#verifyForeign(grant, fencingToken);
    return refusal ?? extendGrant(this, grant, { ttlMs, info: encodeMetadata(info), fencingToken });
  }

  /** Finds the nodes that have a grant of another process. Only a node that has the grant before the extension counts. */
  async #verifyForeign(
    { key, token }: HeldGrant,
    fencingToken: bigint,
  ): Promise<Exclude<ExtendResult, { outcome: "extended" }> | undefined> {
    try {
      const verified = await this.verify(key, token, fencingToken);
      return verified.outcome === "lost" ? verified : undefined;
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    return this.#operator.ready(key, () => verifyGrant(this, this.grants.grantOf(key, token), fencingToken));
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    return this.grants.release(key, token, until);
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    const grant = this.grants.grantOf(key, token);
    grant.isDowngraded = true;
    const release = new QuorumRelease(this.nodeSet, grant);
    release.begin(until, undefined, "downgrade");
    return release.result;
  }

  async setLimit(key: string): Promise<void> {
    throw new LockError("A quorum has no semaphores", { code: "unsupported", key });
  }

  listen(listener: DriverListener): () => void {
    return this.#events.listen(listener);
  }

  inspect(key: string): Promise<LockState> {
    return this.#operator.inspect(key);
  }

  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.#operator.list(query);
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  breakGrant(key: string, fencingToken: bigint, reason: string, note?: BreakNote): Promise<BreakOutcome> {
    return this.#operator.breakGrant({ key, fencingToken, reason, note }, this.random);
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    return this.#operator.audit(query);
  }

  checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return this.#operator.checkFence(key, fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#operator.nodes();
  }

  async close(): Promise<void> {
    for (const request of Array.from(this.requests.items)) {
      request.close();
    }
    this.timers.clear();
    const releases = this.grants.close();
    const releasing = this.nodeSet.nodes.map(({ releaseQueue }) => releaseQueue.idle());
    await Promise.all([...releases, ...releasing]); // bounded by `commandTimeoutMs`
    this.processes.close();
    for (const node of this.nodeSet.nodes) {
      node.close();
    }
  }

  // For requests.

  tokenFor({ lockMode }: AcquireRequest, ticket: number): string {
    return createToken({ clientId: this.#clientId, lockMode, ticket }, this.random);
  }

  settled(request: QuorumRequest): void {
    this.requests.delete(request);
  }

  async holderOf(key: string): Promise<Holder | undefined> {
    return (await this.inspect(key)).holders[0];
  }

  /**
   * Makes new tokens differ from the tokens of a clone of this process.
   * @returns the new client id
   */
  renewClientId(): string {
    this.random.refresh?.();
    this.#clientId = this.random.id();
    return this.#clientId;
  }

  nodeAsked(index: number, question: ProcessQuestion): void {
    this.processes.asked(question, this.#linkOf(this.nodeSet.nodes[index] as QuorumNode));
  }

  #linkOf({ server }: QuorumNode): DirectoryLink {
    const key = this.#keySpace.directoryKey;
    return { server, countsReceivers: true, run: (args) => server.run(processesScript, [key], args) };
  }

  #begin(request: QuorumRequest): QuorumRequest {
    this.processes.used();
    this.requests.add(request);
    request.begin();
    return request;
  }

  #keysOf(key: string): LockKeys {
    return this.#keySpace.keysOf(key);
  }
}
