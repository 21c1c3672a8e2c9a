import { systemClock, type Clock } from "../../runtime/clock.ts";
import { detectConnection, type RedisClient } from "../../drivers/redis/clients/detect.ts";
import type { Connection } from "../../drivers/redis/clients/connection.ts";
import { FaultyConnection } from "./connection.ts";
import type { FaultChoice } from "./fault-plan.ts";

export interface FaultyOptions {
  /** Delays are by this clock. @defaultValue the system's */
  readonly clock?: Clock | undefined;
}

/** What shall go wrong. Each call stands until the next one of its name. */
export interface FaultInjector {
  /**
   * Requests reach the server, replies and messages come back, so many ms later; each of the three in order.
   * Messages as late as replies, unless `messageMs` says otherwise: one may overtake the other.
   */
  delay(delays: {
    readonly requestMs?: number | undefined;
    readonly replyMs?: number | undefined;
    readonly messageMs?: number | undefined;
  }): void;
  /**
   * The server does what it is asked, and the reply is lost.
   * @param choice the next so many, or those of which the predicate says so; 0: none any more
   * @param mode `silence`: no reply ever comes; `reset`: the request rejects, and `onDown` tells of a lost connection
   */
  dropReply(choice: FaultChoice, mode?: "silence" | "reset"): void;
  /**
   * The server does what it is asked, and once more `afterMs` later: what the second time answers is ignored.
   * @param choice the next so many, or those of which the predicate says so; 0: none any more
   */
  duplicate(choice: FaultChoice, afterMs: number): void;
  /** Requests reject with `error` and never reach the server; null: no more. @param times how many. @defaultValue all */
  refuse(error: Error | null, times?: number): void;
  /** Nothing passes, either way, and nobody is told. */
  freeze(): void;
  /** What was held back by {@link freeze} passes now, in order. */
  thaw(): void;
  /** Messages for which the predicate says so never arrive; null: all do. */
  dropMessages(predicate: ((text: string, channel: string) => boolean) | null): void;
  /** The connection of every subscription is lost and made again. What was published in between is not heard. */
  dropSubscription(): void;
}

/** Puts faults between a connection, to a real server or to a fake one, and its user. Without any it changes nothing. */
export function faulty(
  connection: Connection,
  options: FaultyOptions = {},
): { connection: Connection; controls: FaultInjector } {
  const between = new FaultyConnection(connection, options.clock ?? systemClock);
  const { plan } = between;
  const controls: FaultInjector = {
    delay: ({ requestMs = 0, replyMs = 0, messageMs = replyMs }) =>
      Object.assign(plan, { requestMs, replyMs, messageMs }),
    dropReply: (choice, mode = "silence") => Object.assign(plan, { lostReplies: choice, lossMode: mode }),
    duplicate: (choice, afterMs) => Object.assign(plan, { duplicates: choice, duplicatesAfterMs: afterMs }),
    refuse: (error, times = Infinity) => Object.assign(plan, { refusal: error, refusals: times }),
    freeze: () => between.setFrozen(true),
    thaw: () => between.setFrozen(false),
    dropMessages: (predicate) => (plan.isMessageDropped = predicate ?? (() => false)),
    dropSubscription: () => between.dropSubscriptions(),
  };
  return { connection: between, controls };
}

/** The same for a client of ioredis or node-redis: `redis(faultyClient(client).connection)`. The client stays the caller's. */
export function faultyClient(
  client: RedisClient,
  options: FaultyOptions = {},
): { connection: Connection; controls: FaultInjector } {
  return faulty(detectConnection(client), options);
}
