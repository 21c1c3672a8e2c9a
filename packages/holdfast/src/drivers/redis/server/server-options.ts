import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Connection } from "../clients/connection.ts";
import type { NotificationListener } from "./notification-dispatcher.ts";
import type { ServerClock } from "./server-clock.ts";
import type { NotificationStatus } from "./subscriber.ts";

/** Receives the notifications of one server, and the changes of its state. */
export interface ServerEvents<Server> extends NotificationListener {
  /** The state of the subscription changed. Waiting requests must be sent again. */
  notificationStatusChanged(status: NotificationStatus, server: Server): void;
  /** The server was unresponsive and replies again. Failed requests should be repeated at once. */
  recovered(server: Server): void;
  /** The run of the server that replied, and its uptime. Only for a node of a quorum, and before the replies. */
  identified?(runId: string, uptimeMs: number): void;
}

/** The properties of a server that is one slot of a cluster. */
export interface ClusterSlot {
  /** The hash tag that leads to the slot. Undefined for the slot of the client's own description: it has the break subscription. */
  readonly tag: string | undefined;
  /** The clock of the slot's own server. */
  ownClock(): ServerClock;
  /** The clock of the slot's own server. Until that server has replied, the clock of another server. */
  bestClock(): ServerClock;
  /** The descriptions of clients, which may be in other slots. */
  clients(keys: readonly string[]): Promise<unknown[]>;
}

export interface ServerSettings {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly clientId: string;
  readonly commandTimeoutMs: number;
  /** For a node of a quorum: the timeout of one call. */
  readonly nodeTimeoutMs?: number | undefined;
  /** For a node of a quorum: how far the clocks of two nodes may differ. */
  readonly maxClockDifferenceMs?: number | undefined;
  /** For a node of a quorum: how long a fencing counter outlives its lock. */
  readonly retentionMs?: number | undefined;
  readonly queueBound: number;
  readonly slot?: ClusterSlot | undefined;
}
