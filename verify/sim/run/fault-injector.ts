import type { FaultInjector } from "holdfast/testing";

import type { History } from "../judge/history.ts";
import type { Client } from "./client.ts";
import type { Fault, LinkFault } from "../plan/faults.ts";
import type { ProcessMachine } from "./process-machine.ts";
import type { ServerMachine } from "./server-machine.ts";
import type { VirtualClock } from "./virtual-clock.ts";

interface FaultContext {
  readonly clock: VirtualClock;
  readonly history: History;
  readonly machines: readonly ServerMachine[];
  readonly clients: readonly Client[];
  /** When all faults end. */
  readonly quietAt: number;
}

/** Injects the faults of a schedule. */
export class WorldFaults {
  readonly #world: FaultContext;
  /** How many faults keep each link frozen. */
  readonly #freezes = new Map<FaultInjector, number>();
  /** How many faults keep the memory of each server full. */
  readonly #fills = new Map<ServerMachine, number>();

  constructor(world: FaultContext) {
    this.#world = world;
  }

  inject(fault: Fault): void {
    this.#recordFault(fault);
    if (isLinkFault(fault)) {
      this.#setLinkFault(fault, this.#process(fault.client));
      return;
    }
    switch (fault.kind) {
      case "freeze client":
        this.#freezeProcess(this.#process(fault.client), fault.forMs, fault.sleeps);
        return;
      case "pause client":
        this.#pauseProcess(this.#process(fault.client), fault);
        return;
      case "kill client":
        this.#kill(this.#process(fault.client), fault.silent);
        return;
      case "step client":
        this.#process(fault.client).step(fault.ms);
        return;
      case "freeze node":
        for (const { process } of this.#world.clients) {
          this.#cut(process, fault.node, fault.forMs);
        }
        return;
      case "restart node":
        this.#restart(fault);
        return;
      case "step node":
        this.#step(this.#machine(fault.node), fault.ms);
        return;
      case "fill memory":
        this.#fill(this.#machine(fault.node), fault.forMs);
        return;
    }
  }

  #step(machine: ServerMachine, ms: number): void {
    machine.clock.step(ms);
    machine.wasSetBack ||= ms < 0;
    if (ms > 0) {
      this.#world.history.dataLost(); // the grants of the node expire early
    }
  }

  #fill(machine: ServerMachine, forMs: number): void {
    const setFills = (by: number): void => {
      const fills = (this.#fills.get(machine) ?? 0) + by;
      this.#fills.set(machine, fills);
      machine.server.setMemoryFull(fills > 0);
    };
    setFills(1);
    this.#after(forMs, () => {
      setFills(-1);
    });
  }

  /** Records which clients a fault disturbs, and for how long. */
  #recordFault(fault: Fault): void {
    const { history, clients, clock, quietAt } = this.#world;
    const process = "client" in fault ? this.#process(fault.client) : undefined;
    const end = "count" in fault ? quietAt : Math.min(quietAt, clock.now + durationOf(fault)); // a fault with a count may last until the quiet period
    for (const client of clients) {
      if (process === undefined || client.process === process) {
        history.disturbances.begin(client.index, end + lastingEffectMs(fault));
      }
    }
  }

  #setLinkFault(fault: LinkFault, process: ProcessMachine): void {
    const { node } = fault;
    const faults = process.faults[node] as FaultInjector;
    switch (fault.kind) {
      case "cut":
        this.#cut(process, node, fault.forMs);
        return;
      case "slow": {
        const [requestMs, replyMs, messageMs] = fault.delaysMs;
        faults.delay({ requestMs, replyMs, messageMs });
        this.#after(fault.forMs, () => {
          process.restoreDelay(node);
        });
        return;
      }
      case "lose replies":
        faults.dropReply(fault.count, fault.mode);
        return;
      case "lose messages":
        faults.dropMessages((text) => text.startsWith(fault.event));
        this.#after(fault.forMs, () => {
          faults.dropMessages(null);
        });
        return;
      case "reorder":
        process.lateRequests[node]?.holdNext(fault.count, fault.afterMs);
        return;
      case "duplicate":
        faults.duplicate(fault.count, fault.afterMs);
        return;
      case "drop subscription":
        faults.dropSubscription();
        return;
    }
  }

  #freezeProcess(process: ProcessMachine, forMs: number, sleeps: boolean): void {
    if (process.isRunning) {
      process.freeze(sleeps);
      this.#after(forMs, () => {
        process.thaw();
      });
    }
  }

  /** The pause begins with the next event, unless the faults have ended by then. */
  #pauseProcess(process: ProcessMachine, fault: Extract<Fault, { kind: "pause client" }>): void {
    process.gate.interceptNext(fault.on, (event) => {
      if (this.#world.clock.now >= this.#world.quietAt) {
        event();
        return;
      }
      this.#recordFault(fault);
      this.#after(fault.forMs, process.pauseTurn(event, fault.readings));
    });
  }

  #kill(process: ProcessMachine, keepsConnections: boolean): void {
    process.die(keepsConnections);
    for (const client of this.#world.clients) {
      if (client.process === process) {
        this.#world.history.clientDied(client.index);
      }
    }
  }

  /** Stops all traffic between a client and a node. */
  #cut(process: ProcessMachine, node: number, forMs: number): void {
    const faults = process.faults[node] as FaultInjector;
    this.#freezes.set(faults, (this.#freezes.get(faults) ?? 0) + 1);
    faults.freeze();
    this.#machine(node).wasDown = true;
    this.#after(forMs, () => {
      const remaining = (this.#freezes.get(faults) ?? 0) - 1;
      this.#freezes.set(faults, remaining);
      if (remaining === 0) {
        faults.thaw();
      }
    });
  }

  #restart({ node, keepData, downMs, becomesDurable }: Extract<Fault, { kind: "restart node" }>): void {
    const machine = this.#machine(node);
    if (becomesDurable) {
      machine.server.setDurable(true);
    }
    machine.server.restart({ keepData });
    if (!keepData) {
      this.#world.history.dataLost();
    }
    machine.wasDown ||= downMs > 0;
    if (downMs > 0) {
      const refuse = (error: Error | null): void => {
        for (const { process } of this.#world.clients) {
          process.faults[node]?.refuse(error);
        }
      };
      refuse(new Error("connect ECONNREFUSED"));
      this.#after(downMs, () => {
        refuse(null);
      });
    }
  }

  /** Runs the action after this time, or at the start of the quiet period, if that is earlier. */
  #after(ms: number, action: () => void): void {
    this.#world.clock.at(Math.min(this.#world.clock.now + ms, this.#world.quietAt), action);
  }

  #process(client: number): ProcessMachine {
    return (this.#world.clients[client] as Client).process;
  }

  #machine(index: number): ServerMachine {
    return this.#world.machines[index] as ServerMachine;
  }
}

function durationOf(fault: Fault): number {
  return "forMs" in fault ? fault.forMs : fault.kind === "restart node" ? fault.downMs : 0;
}

/** How long the effects of a fault outlast its end, ms. */
function lastingEffectMs(fault: Fault): number {
  if (fault.kind === "step node") {
    return Math.abs(fault.ms) + inTransitMs; // tickets never fall, so after a clock is set back the tickets stay ahead of it
  } else if (fault.kind === "restart node") {
    return maxUnsubscribedMs;
  }
  return Math.min(maxUnsubscribedMs, durationOf(fault) + inTransitMs); // the delay between retries doubles while the retries fail
}

/** In this time requests in flight arrive, and a client that slept compares its clocks, ms. */
const inTransitMs = 2_000;
/** A client without notifications verifies its subscription again after this time, and has no queue entry until then, ms. */
const maxUnsubscribedMs = 7_500;

function isLinkFault(fault: Fault): fault is LinkFault {
  return "client" in fault && "node" in fault;
}
