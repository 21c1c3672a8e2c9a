import { setTimeout as pause } from "node:timers/promises";

import type { Proxy } from "@holdfast/test-kit";

import type { ClientProcess } from "./client-process.ts";
import type { FaultKind } from "../plan/fault-kinds.ts";
import type { Fault, Keys } from "../plan/plan.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { Stage } from "./environment.ts";
import type { Succession } from "./succession.ts";

/** A request to run a script, with which every operation of the library comes. */
const anyScript = /evalsha|eval/i;
/** A message on a channel of the library, or the answer that tells of the subscription. */
const anyMessage = /holdfast:grants/;

/** A client that is to be frozen gets a lock within this, most often. */
const ambushWithinMs = 2_500;

/** Lets it happen, for its time, and heals what it did. */
export async function inflict(fault: Fault, stage: Stage): Promise<void> {
  const { number, kind } = fault;
  stage.write({ e: "fault", at: stage.now(), number, kind, target: targetOf(fault) });
  await deeds[kind](fault, stage);
  stage.write({ e: "over", at: stage.now(), number });
}

type Deed = (fault: Fault, stage: Stage) => Promise<void>;

const deeds: Readonly<Record<FaultKind, Deed>> = {
  "restart with its data": onServer((server, { forMs }) => server.restart(() => pause(forMs))),
  "restart empty": onServer((server, { forMs }) => server.restart(() => pause(forMs))),
  "restart a minority empty": restartTogether,
  "restart under a held lock": restartTogether,
  "freeze a server": onServer(freeze),
  "freeze a majority": onServer(freeze),
  "kill a primary": onSuccession((succession, { number, forMs }) =>
    succession.replace(number, "kill", forMs),
  ),
  "freeze a primary": onSuccession((succession, { number, forMs }) =>
    succession.replace(number, "freeze", forMs),
  ),
  "move a slot": onSuccession((succession, { number }, { hot, lukewarm }) =>
    succession.move([hot, ...lukewarm][number % (lukewarm.length + 1)] as string, number),
  ),
  "step a clock": onServer(async (server, { forMs, size }) => {
    server.step(size);
    await pause(forMs);
    server.step(-size);
  }),
  "step the clock back": onServer(async (server, { size }) => {
    server.step(size);
  }),
  "clock runs unevenly": onServer(runUnevenly),
  "flush scripts": onServer((server) => server.flushScripts()),
  "end connections": onServer((server) => server.endConnections()),
  "end subscriptions": onServer((server) => server.endSubscriptions()),
  "freeze a client": onClient(async (client, { forMs }) => {
    client.freeze();
    await pause(forMs);
    client.thaw();
  }),
  "freeze a client past the TTL": onClient(async (client, { forMs }) => {
    await client.ambush(ambushWithinMs);
    await pause(forMs);
    client.thaw();
  }),
  "kill a client": replace,
  "block an event loop": onClient(async (client, { forMs }) => {
    client.tell({ order: "block", forMs });
    await pause(forMs);
  }),
  "refuse one way": onWays(refuse),
  "refuse all ways": onWays(refuse),
  "black hole on one way": onWays(swallowAll),
  "black hole on all ways": onWays(swallowAll),
  "half-open connections": onWays(swallowAll),
  "half-open subscriptions": onWays(async (way, { forMs }) => {
    way.deadenSubscriptions();
    await pause(forMs);
    way.cut();
  }),
  "slow connections": onWays(async (way, { forMs, size }) => {
    way.delay(size);
    await pause(forMs);
    way.delay(0);
  }),
  "lose a reply": onWays(async (way, { forMs }) => {
    await Promise.race([way.loseNextReply(anyScript), pause(forMs)]);
    way.forgetLoss();
  }),
  "lose all replies": onWays(async (way, { forMs }) => {
    way.dropReplies();
    await pause(forMs);
    way.cut(); // a connection cannot lose bytes and go on
    way.keepReplies();
  }),
  "lose all messages": onWays(async (way, { forMs }) => {
    way.swallow(anyMessage);
    await pause(forMs);
    way.swallow(undefined);
  }),
  "break a lock": onClient(async (client) => {
    client.tell({ order: "break" });
  }),
};

/** To each of the fault's servers at once. */
function onServer(deed: (server: ChaosServer, fault: Fault) => Promise<unknown>): Deed {
  return async (fault, stage) => {
    await Promise.all(fault.nodes.map((node) => deed(stage.servers[node] as ChaosServer, fault)));
  };
}

/** To one of the groups in which servers take each other's place. */
function onSuccession(deed: (succession: Succession, fault: Fault, keys: Keys) => Promise<void>): Deed {
  return async (fault, { succession, keys }) => {
    if (succession) {
      await deed(succession, fault, keys);
    }
  };
}

function onClient(deed: (client: ClientProcess, fault: Fault) => Promise<void>): Deed {
  return (fault, stage) => deed(stage.client(fault.client as number), fault);
}

/** To each of the client's ways to the fault's servers at once. */
function onWays(deed: (way: Proxy, fault: Fault) => Promise<void>): Deed {
  return async (fault, stage) => {
    const ways = stage.ways[fault.client as number] as readonly Proxy[];
    await Promise.all(fault.nodes.map((node) => deed(ways[node] as Proxy, fault)));
  };
}

async function freeze(server: ChaosServer, { forMs }: Fault): Promise<void> {
  server.freeze();
  await pause(forMs);
  server.thaw();
}

async function refuse(way: Proxy, { forMs }: Fault): Promise<void> {
  way.refuse(true);
  way.cut();
  await pause(forMs);
  way.refuse(false);
}

async function swallowAll(way: Proxy, { kind, forMs }: Fault): Promise<void> {
  way.pause("requests");
  way.pause("replies");
  await pause(forMs);
  if (kind === "half-open connections") {
    way.cut(); // what was kept back goes with it
  }
  way.resume("requests");
  way.resume("replies");
}

/** Fast, and then slow for as long, so that it is right again; or the other way round. */
async function runUnevenly(server: ChaosServer, { forMs, number }: Fault): Promise<void> {
  const drift = number % 2 === 0 ? 0.008 : -0.008;
  server.run(1 + drift);
  await pause(forMs / 2);
  server.run(1 - drift);
  await pause(forMs / 2);
  server.run(1);
}

/** Killed, and after a while a new one in its place. */
async function replace(fault: Fault, stage: Stage): Promise<void> {
  const index = fault.client as number;
  const killed = stage.client(index);
  if (!killed.isUp) {
    return; // who comes in its place is still starting: a second one would be nobody's to stop
  }
  stage.write({ e: "killed", at: stage.now(), process: killed.name });
  await killed.kill();
  await pause(fault.forMs);
  const next = await stage.open(index);
  next.tell({ order: "storm" });
}

/**
 * A client is frozen with a lock in hand, and servers are restarted. Of a quorum it does not reach some others: those that
 * remember its lease are no majority any more.
 */
async function restartTogether(fault: Fault, stage: Stage): Promise<void> {
  const index = fault.client as number;
  const servers = fault.nodes.map((node) => stage.servers[node] as ChaosServer);
  const others = stage.servers.map((_, node) => node).filter((node) => !fault.nodes.includes(node));
  const away = others.slice(0, Math.max(1, others.length - fault.nodes.length - 1));
  const ways = away.map((node) => stage.ways[index]?.[node] as Proxy);
  for (const way of ways) {
    way.refuse(true);
    way.cut();
  }
  await stage.client(index).ambush(ambushWithinMs);
  await Promise.all([
    ...servers.map((server) => server.restart(() => Promise.resolve())),
    pause(fault.forMs),
  ]);
  stage.client(index).thaw();
  for (const way of ways) {
    way.refuse(false);
  }
}

function targetOf({ client, nodes }: Fault): string {
  const servers = nodes.length === 0 ? "" : `server ${nodes.join(", ")}`;
  return client === null ? servers : `client ${client}${servers === "" ? "" : ` and ${servers}`}`;
}
