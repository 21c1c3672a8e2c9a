import type { DriverListener } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { UnorderedSet } from "../../../runtime/unordered-set.ts";
import { clonedError } from "../server/errors.ts";
import type { RedisProcessDirectory } from "../processes/directory.ts";
import type { ProcessQuestion } from "../protocol/messages.ts";
import type { ServerListener } from "../server/server.ts";
import type { NotificationStatus } from "../server/subscriber.ts";
import type { GrantRegistry } from "./grant-registry.ts";
import type { NodeSet } from "./node-set.ts";
import type { QuorumNode } from "./quorum-node.ts";
import type { QuorumRequest } from "./quorum-acquire.ts";

export interface NodeEventsHost {
  readonly nodeSet: NodeSet;
  readonly grants: GrantRegistry;
  readonly requests: UnorderedSet<QuorumRequest>;
  readonly processes: RedisProcessDirectory;
  renewClientId(): string;
  /** Another process asks by a node for the leases and waits of this process. */
  nodeAsked(index: number, question: ProcessQuestion): void;
}

/** Forwards the events of the nodes (notifications, losses, changes of connections) to the grants, requests and listeners. */
export class NodeEvents {
  readonly #host: NodeEventsHost;
  readonly #listeners = new Set<DriverListener>();

  constructor(host: NodeEventsHost) {
    this.#host = host;
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  listenerOf(index: number): ServerListener {
    return {
      granted: (grant) => this.#host.grants.granted(index, grant),
      retry: (token) => this.#host.grants.retry(index, token),
      cloned: () => this.#cloned(),
      voteRequestedBack: (token, number) => this.#host.grants.voteRequestedBack(index, token, number),
      ended: (token, reason, cause) => this.#ended(index, token, reason, cause),
      processAsked: (question) => this.#host.nodeAsked(index, question),
      processAnswered: (answer) => this.#host.processes.answered(answer),
      recovered: () => this.#recovered(index),
      notificationStatusChanged: (status) => this.#notificationStatusChanged(index, status),
    };
  }

  #ended(index: number, token: string, reason: LossReason, cause: unknown): void {
    const lost = this.#host.grants.ended(index, token, reason);
    if (lost) {
      for (const listener of this.#listeners) {
        listener.lost(token, reason, cause);
      }
      this.#host.grants.cleanUpLost(lost);
    }
  }

  /** The clone has the same tokens. All leases are lost, and all waiting requests continue with new tokens. */
  #cloned(): void {
    const clientId = this.#host.renewClientId();
    for (const { server } of this.#host.nodeSet.nodes) {
      server.rename(clientId);
    }
    for (const listener of this.#listeners) {
      listener.lost(null, "suspended", clonedError());
    }
    for (const request of Array.from(this.#host.requests.items)) {
      request.cloned();
    }
  }

  #notificationStatusChanged(index: number, status: NotificationStatus): void {
    if (status === "verified") {
      this.#host.processes.verified();
      for (const listener of this.#listeners) {
        listener.notificationsInterrupted();
      }
    }
    this.#retry(index);
  }

  /** A node is responsive again. Extensions are sent first, then releases, then vote requests. */
  #recovered(index: number): void {
    for (const listener of this.#listeners) {
      listener.engineRecovered();
    }
    const { server, releaseQueue } = this.#host.nodeSet.nodes[index] as QuorumNode;
    releaseQueue.recovered(server);
    this.#retry(index);
  }

  #retry(index: number): void {
    for (const request of Array.from(this.#host.requests.items)) {
      request.requestVote(index);
    }
  }
}
