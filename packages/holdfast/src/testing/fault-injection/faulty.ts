import { systemClock, type Clock } from "../../runtime/clock.ts";
import { detectConnection, type RedisClient } from "../../drivers/redis/clients/detect.ts";
import type { Connection } from "../../drivers/redis/clients/connection.ts";
import { FaultyConnection } from "./connection.ts";
import type { FaultChoice } from "./fault-plan.ts";

export interface FaultyOptions {
  /** The clock of the delays. @defaultValue the system clock */
  readonly clock?: Clock | undefined;
}

/** Sets the faults of a connection. Each call is in force until the next call of the same method. */
export interface FaultInjector {
  /**
   * Delays requests, replies and notifications, each by its number of ms and in order. Without `messageMs`, notifications have the
   * delay of replies. A notification and a reply may overtake each other.
   */
  delay(delays: {
    readonly requestMs?: number | undefined;
    readonly replyMs?: number | undefined;
    readonly messageMs?: number | undefined;
  }): void;
  /**
   * The server performs the request, and the reply is lost.
   * @param choice the number of next calls, or a predicate; 0: none
   * @param mode with `silence`, the request never settles; with `reset`, the request rejects and `onDown` reports a lost connection
   */
  dropReply(choice: FaultChoice, mode?: "silence" | "reset"): void;
  /**
   * The server performs the request, and again `afterMs` later. The second reply is dropped.
   * @param choice the number of next calls, or a predicate; 0: none
   */
  duplicate(choice: FaultChoice, afterMs: number): void;
  /** Rejects requests with `error` before they reach the server; null: none. @param times the number of requests. @defaultValue all */
  refuse(error: Error | null, times?: number): void;
  /** Holds all packets in both directions, without any report. */
  freeze(): void;
  /** Delivers the packets that {@link freeze} has held, in order. */
  thaw(): void;
  /** Drops the notifications that the predicate chooses; null: none. */
  dropMessages(predicate: ((text: string, channel: string) => boolean) | null): void;
  /** Every subscription loses its connection and reconnects. Notifications published in between are lost. */
  dropSubscription(): void;
}

/** Wraps a connection to a real or fake server, and injects faults. Without faults the wrapped connection behaves as the original. */
export function faulty(
  connection: Connection,
  options: FaultyOptions = {},
): { connection: Connection; controls: FaultInjector } {
  const wrapped = new FaultyConnection(connection, options.clock ?? systemClock);
  const { plan } = wrapped;
  const controls: FaultInjector = {
    delay: ({ requestMs = 0, replyMs = 0, messageMs = replyMs }) =>
      Object.assign(plan, { requestMs, replyMs, messageMs }),
    dropReply: (choice, mode = "silence") => Object.assign(plan, { lostReplies: choice, lossMode: mode }),
    duplicate: (choice, afterMs) => Object.assign(plan, { duplicates: choice, duplicatesAfterMs: afterMs }),
    refuse: (error, times = Infinity) => Object.assign(plan, { refusal: error, refusals: times }),
    freeze: () => wrapped.setFrozen(true),
    thaw: () => wrapped.setFrozen(false),
    dropMessages: (predicate) => (plan.isMessageDropped = predicate ?? (() => false)),
    dropSubscription: () => wrapped.dropSubscriptions(),
  };
  return { connection: wrapped, controls };
}

/** As {@link faulty}, for a client of ioredis or node-redis: `redis(faultyClient(client).connection)`. The caller closes the client. */
export function faultyClient(
  client: RedisClient,
  options: FaultyOptions = {},
): { connection: Connection; controls: FaultInjector } {
  return faulty(detectConnection(client), options);
}
