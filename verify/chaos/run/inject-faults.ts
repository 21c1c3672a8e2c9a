import { setTimeout as pause } from "node:timers/promises";

import type { Proxy } from "@holdfast/test-kit";

import type { ClientProcess } from "./client-process.ts";
import type { FaultKind } from "../plan/fault-kinds.ts";
import type { Engine } from "../plan/engine.ts";
import type { Fault, Keys } from "../plan/plan.ts";
import type { ChaosClock } from "./chaos-clock.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { Environment } from "./environment.ts";
import type { FailoverGroups } from "./succession.ts";

/** A client that is to be frozen usually gets a lock within this time. */
const freezeWaitMs = 2_500;

/** Injects a fault, waits for its duration, and repairs its effect. */
export async function injectFault(fault: Fault, environment: Environment): Promise<void> {
  const { faultId, kind } = fault;
  environment.write({ e: "fault", at: environment.now(), faultId, kind, target: targetOf(fault) });
  await faultActions[kind](fault, environment);
  environment.write({ e: "fault-ended", at: environment.now(), faultId });
}

type FaultAction = (fault: Fault, environment: Environment) => Promise<void>;

const faultActions: Readonly<Record<FaultKind, FaultAction>> = {
  "restart with its data": onServer((server, { forMs }) => server.restart(() => pause(forMs))),
  "restart empty": onServer((server, { forMs }) => server.restart(() => pause(forMs))),
  "restart a minority empty": restartServersAndClient,
  "become durable": onServer(async (server, { faultId, forMs }) =>
    server.becomeDurable?.(faultId % 2 === 1, () => pause(forMs)),
  ),
  "lose power": onServer(async (server, { faultId, forMs }) =>
    server.losePower?.(faultId % 2 === 1, () => pause(forMs)),
  ),
  "restart under a held lock": restartServersAndClient,
  "freeze a server": onServer(freeze),
  "freeze a majority": onServer(freeze),
  "kill a primary": onFailoverGroups((succession, { faultId, forMs }) =>
    succession.replace(faultId, "kill", forMs),
  ),
  "freeze a primary": onFailoverGroups((succession, { faultId, forMs }) =>
    succession.replace(faultId, "freeze", forMs),
  ),
  "move a slot": onFailoverGroups((succession, { faultId }, { hot, lukewarm }) =>
    succession.move([hot, ...lukewarm][faultId % (lukewarm.length + 1)] as string, faultId),
  ),
  "step a clock": onServer(({ clock }, fault) => stepAndBack(clock, fault)),
  "step the clock back": onServer(async ({ clock }, { size }) => {
    clock.step(size);
  }),
  "step the server's clock": onServer(({ clock }, fault) => stepAndBack(clock, fault)),
  "step a client's clock": (fault, { clientClocks }) =>
    stepAndBack(clientClocks[fault.client as number] as ChaosClock, fault),
  "clock runs unevenly": onServer(runUnevenly),
  "flush scripts": onServer(async (server) => server.flushScripts?.()),
  "end connections": endConnections,
  "end subscriptions": onServer(async (server) => server.endSubscriptions?.()),
  "freeze a client": onClient(async (client, { forMs }) => {
    client.freeze();
    await pause(forMs);
    client.thaw();
  }),
  "freeze a client past the TTL": onClient(async (client, { forMs }) => {
    await client.freezeWhileHolding(freezeWaitMs);
    await pause(forMs);
    client.thaw();
  }),
  "kill a client": replace,
  "block an event loop": onClient(async (client, { forMs }) => {
    client.send({ order: "block", forMs });
    await pause(forMs);
  }),
  "refuse one link": onLinks(refuseLink),
  "refuse all links": onLinks(refuseLink),
  "black hole on one link": onLinks(blackHole),
  "black hole on all links": onLinks(blackHole),
  "half-open connections": onLinks(blackHole),
  "half-open subscriptions": onLinks(async (link, { forMs }) => {
    link.halfOpenSubscriptions();
    await pause(forMs);
    link.cut();
  }),
  "slow connections": onLinks(async (link, { forMs, size }) => {
    link.delay(size);
    await pause(forMs);
    link.delay(0);
  }),
  "lose a reply": onLinks(async (link, { forMs }, { request }) => {
    await Promise.race([link.loseNextReply(request), pause(forMs)]);
    link.cancelReplyLoss();
  }),
  "lose all replies": onLinks(async (link, { forMs }) => {
    link.dropReplies();
    await pause(forMs);
    link.cut(); // a connection that lost bytes cannot continue
    link.stopDroppingReplies();
  }),
  "lose all messages": onLinks(async (link, { forMs }, { message }) => {
    link.dropMatching(message);
    await pause(forMs);
    link.dropMatching(undefined);
  }),
  "break a lock": onClient(async (client) => {
    client.send({ order: "break" });
  }),
};

/** Applies a fault to each of its servers at once. */
function onServer(action: (server: ChaosServer, fault: Fault) => Promise<unknown>): FaultAction {
  return async (fault, environment) => {
    await Promise.all(fault.nodes.map((node) => action(environment.servers[node] as ChaosServer, fault)));
  };
}

/** Applies a fault to one of the groups of servers that replace each other. */
function onFailoverGroups(
  action: (succession: FailoverGroups, fault: Fault, keys: Keys) => Promise<void>,
): FaultAction {
  return async (fault, { failovers, keys }) => {
    if (failovers) {
      await action(failovers, fault, keys);
    }
  };
}

function onClient(action: (client: ClientProcess, fault: Fault) => Promise<void>): FaultAction {
  return (fault, environment) => action(environment.client(fault.client as number), fault);
}

/** Applies a fault to each of the client's links to the fault's servers at once. */
function onLinks(action: (link: Proxy, fault: Fault, engine: Engine) => Promise<void>): FaultAction {
  return async (fault, environment) => {
    const links = environment.links[fault.client as number] as readonly Proxy[];
    await Promise.all(fault.nodes.map((node) => action(links[node] as Proxy, fault, environment.engine)));
  };
}

async function freeze(server: ChaosServer, { forMs }: Fault): Promise<void> {
  server.freeze();
  await pause(forMs);
  server.thaw();
}

async function stepAndBack(clock: ChaosClock, { forMs, size }: Fault): Promise<void> {
  clock.step(size);
  await pause(forMs);
  clock.step(-size);
}

/** Servers without a command for it leave it to the proxies. */
async function endConnections({ nodes }: Fault, { servers, links }: Environment): Promise<void> {
  for (const node of nodes) {
    const server = servers[node] as ChaosServer;
    if (server.endConnections) {
      await server.endConnections();
    } else {
      links.forEach((own) => own[node]?.cut());
    }
  }
}

async function refuseLink(link: Proxy, { forMs }: Fault): Promise<void> {
  link.refuse(true);
  link.cut();
  await pause(forMs);
  link.refuse(false);
}

async function blackHole(link: Proxy, { kind, forMs }: Fault): Promise<void> {
  link.pause("requests");
  link.pause("replies");
  await pause(forMs);
  if (kind === "half-open connections") {
    link.cut(); // the connection also loses the data that the black hole retained
  }
  link.resume("requests");
  link.resume("replies");
}

/** Runs the clock fast and then slow for the same time, or in the other order, so that the clock is correct afterwards. */
async function runUnevenly({ clock }: ChaosServer, { forMs, faultId }: Fault): Promise<void> {
  const drift = faultId % 2 === 0 ? 0.008 : -0.008;
  clock.setRate(1 + drift);
  await pause(forMs / 2);
  clock.setRate(1 - drift);
  await pause(forMs / 2);
  clock.setRate(1);
}

/** Kills a client, and starts a new one after a while. */
async function replace(fault: Fault, environment: Environment): Promise<void> {
  const index = fault.client as number;
  const killed = environment.client(index);
  if (!killed.isUp) {
    return; // the replacement is still starting, and nothing would stop a second one
  }
  environment.write({ e: "killed", at: environment.now(), process: killed.name });
  await killed.kill();
  await pause(fault.forMs);
  const next = await environment.open(index);
  next.send({ order: "storm" });
}

/**
 * Freezes a client that holds a lock, and restarts servers. On a quorum the client does not reach some other servers, so the servers that
 * still have its lease are no majority.
 */
async function restartServersAndClient(fault: Fault, environment: Environment): Promise<void> {
  const index = fault.client as number;
  const servers = fault.nodes.map((node) => environment.servers[node] as ChaosServer);
  const others = environment.servers
    .map((_index, node) => node)
    .filter((node) => !fault.nodes.includes(node));
  const away = others.slice(0, Math.max(1, others.length - fault.nodes.length - 1));
  const links = away.map((node) => environment.links[index]?.[node] as Proxy);
  for (const link of links) {
    link.refuse(true);
    link.cut();
  }
  await environment.client(index).freezeWhileHolding(freezeWaitMs);
  await Promise.all([
    ...servers.map((server) => server.restart(() => Promise.resolve())),
    pause(fault.forMs),
  ]);
  environment.client(index).thaw();
  for (const link of links) {
    link.refuse(false);
  }
}

function targetOf({ client, nodes }: Fault): string {
  const servers = nodes.length === 0 ? "" : `server ${nodes.join(", ")}`;
  return client === null ? servers : `client ${client}${servers === "" ? "" : ` and ${servers}`}`;
}
