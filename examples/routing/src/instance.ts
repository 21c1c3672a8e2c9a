// One instance of the service, in a process of its own. It serves requests by messages of its parent, and ends with its parent.
import { once } from "node:events";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import type { FromInstance, ToInstance } from "./messages.ts";
import { OwnedShards } from "./owned-shards.ts";

process.once("disconnect", () => process.exit(0));

const [start] = (await once(process, "message")) as [Extract<ToInstance, { kind: "start" }>];
const client = new Redis(start.redisUrl);
client.on("error", () => undefined);
const locks = createLocks(redis(client, { prefix: `${start.prefix}lock:` }));
const owned = new OwnedShards({ ...start, locks, client });

process.on("message", (message: ToInstance) => {
  if (message.kind === "members") {
    owned.setMembers(message.members);
  } else if (message.kind === "request") {
    void reply(message.id, message.order);
  }
});
send({ kind: "ready" });

async function reply(id: number, order: string): Promise<void> {
  send({ kind: "reply", id, outcome: await owned.serve(id, order) });
}

function send(message: FromInstance): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
