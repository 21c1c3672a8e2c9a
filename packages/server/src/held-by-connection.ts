import { isLockError, type Lease } from "holdfast";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context } from "hono";

import { ClientDisconnected, type Connection } from "./connection.ts";
import type { RouteEnv, ServiceContext } from "./context.ts";
import { EventStream } from "./event-stream.ts";
import { problemOf } from "./problems.ts";
import { ServiceError } from "./refusal.ts";
import type { AcquireCommand } from "./acquire-leases.ts";

/**
 * Holds a lock while the client's connection is open. The service renews the lock, and releases it when the connection closes. Work that
 * continues without the connection must not use this mode.
 */
export async function holdWhileConnected(
  { leases, refusals }: ServiceContext,
  c: Context<RouteEnv>,
  command: AcquireCommand,
  connection: Connection,
): Promise<Response> {
  let held: readonly Lease[] = [];
  let uncount = (): void => undefined;
  let stream: EventStream | undefined;
  const open = (): EventStream => (stream ??= new EventStream(c.env.outgoing));
  try {
    const onQueued = (): void => {
      open()
        .send("waiting", { keys: command.keys })
        .catch(() => undefined); // the wait reports its own failure
    };
    ({ leases: held, uncount } = await leases.acquireLeases(
      command,
      { closed: connection.closed, onQueued },
      true,
    ));
    await open().send("granted", leases.describe(held));
    await endOf(held, connection.closed);
    await release(held);
  } catch (error) {
    refusals.report(c, problemOf(error));
    await sendRenewal(error, held, open);
  }
  uncount();
  stream?.end();
  return RESPONSE_ALREADY_SENT;
}

/** Resolves when the client has disconnected. Rejects with the loss, or with the reason of the end. */
function endOf(held: readonly Lease[], closed: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      if (closed.reason instanceof ClientDisconnected) {
        resolve();
      } else {
        reject(closed.reason as Error);
      }
    };
    closed.addEventListener("abort", end, { once: true });
    if (closed.aborted) {
      end();
    }
    for (const { signal } of held) {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    }
  });
}

async function sendRenewal(error: unknown, held: readonly Lease[], open: () => EventStream): Promise<void> {
  if (error instanceof ClientDisconnected) {
    await release(held);
  } else if (error instanceof ServiceError && held.length > 0) {
    // The service drains, or the token was revoked. The client may still be working, so the lock is left to expire.
    const validMs = Math.min(...held.map((lease) => lease.remainingMs()));
    held.forEach((lease) => lease.orphan());
    await (
      error.code === "draining"
        ? open().send("draining", { validMs })
        : open().send("problem", { ...problemOf(error), validMs })
    ).catch(() => undefined);
  } else {
    const isLoss = isLockError(error, "lease-lost");
    await open()
      .send(isLoss ? "lost" : "problem", problemOf(error))
      .catch(() => undefined);
    await release(held);
  }
}

async function release(held: readonly Lease[]): Promise<void> {
  await Promise.allSettled(held.map((lease) => lease.release()));
}
