import type { Faults } from "holdfast/testing";

import type { History } from "./history.ts";
import type { ClientMachine, ServerMachine } from "./machines.ts";
import type { Fault } from "./schedule.ts";
import type { WorldClock } from "./world-clock.ts";

/** Of the messages between a client and a node. */
type Disturbance = Extract<Fault, { kind: (typeof disturbances)[number] }>;
const disturbances = ["slow", "lose replies", "lose messages", "duplicate", "drop subscription"] as const;

interface World {
  readonly clock: WorldClock;
  readonly history: History;
  readonly machines: readonly ServerMachine[];
  readonly clients: readonly ClientMachine[];
  /** When all faults end. */
  readonly peaceAt: number;
}

/** What goes wrong in a world. */
export class Trouble {
  readonly #world: World;
  /** So many hold a frozen thing frozen. */
  readonly #freezes = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  begin(fault: Fault): void {
    if (isDisturbance(fault)) {
      this.#disturb(fault, this.#client(fault.client));
      return;
    }
    switch (fault.kind) {
      case "freeze client":
        this.#freezeClient(this.#client(fault.client), fault.forMs, fault.sleeps);
        return;
      case "kill client":
        this.#client(fault.client).die(fault.silent);
        this.#world.history.gone(fault.client);
        return;
      case "freeze node":
        for (const client of this.#world.clients) {
          this.#cut(client, fault.node, fault.forMs);
        }
        return;
      case "cut":
        this.#cut(this.#client(fault.client), fault.node, fault.forMs);
        return;
      case "restart node":
        this.#restart(fault.node, fault.keepData, fault.downMs);
        return;
      case "step node":
        this.#machine(fault.node).clock.step(fault.ms);
        return;
    }
  }

  #disturb(fault: Disturbance, client: ClientMachine): void {
    const { node } = fault;
    const faults = client.faults[node] as Faults;
    switch (fault.kind) {
      case "slow": {
        const [requestMs, replyMs, messageMs] = fault.delaysMs;
        faults.delay({ requestMs, replyMs, messageMs });
        this.#later(fault.forMs, () => {
          client.restoreDelay(node);
        });
        return;
      }
      case "lose replies":
        faults.dropReply(fault.count, fault.mode);
        return;
      case "lose messages":
        faults.dropMessages((text) => text.startsWith(fault.word));
        this.#later(fault.forMs, () => {
          faults.dropMessages(null);
        });
        return;
      case "duplicate":
        faults.duplicate(fault.count, fault.afterMs);
        return;
      case "drop subscription":
        faults.dropSubscription();
        return;
    }
  }

  #freezeClient(client: ClientMachine, forMs: number, sleeps: boolean): void {
    if (!client.isDead && client.gate.isOpen) {
      client.freeze(sleeps);
      this.#later(forMs, () => {
        client.thaw();
      });
    }
  }

  /** Nothing passes between a client and a node. */
  #cut(client: ClientMachine, node: number, forMs: number): void {
    const link = `${client.index} ${node}`;
    const faults = client.faults[node] as Faults;
    this.#freezes.set(link, (this.#freezes.get(link) ?? 0) + 1);
    faults.freeze();
    this.#machine(node).wasAway = true;
    this.#later(forMs, () => {
      const left = (this.#freezes.get(link) ?? 0) - 1;
      this.#freezes.set(link, left);
      if (left === 0) {
        faults.thaw();
      }
    });
  }

  #restart(node: number, keepData: boolean, downMs: number): void {
    const machine = this.#machine(node);
    machine.server.restart({ keepData });
    machine.wasAway ||= downMs > 0;
    if (downMs > 0) {
      const refuse = (error: Error | null): void => {
        for (const { faults } of this.#world.clients) {
          faults[node]?.refuse(error);
        }
      };
      refuse(new Error("connect ECONNREFUSED"));
      this.#later(downMs, () => {
        refuse(null);
      });
    }
  }

  /** At the latest when peace comes. */
  #later(ms: number, action: () => void): void {
    this.#world.clock.at(Math.min(this.#world.clock.now + ms, this.#world.peaceAt), action);
  }

  #client(index: number): ClientMachine {
    return this.#world.clients[index] as ClientMachine;
  }

  #machine(index: number): ServerMachine {
    return this.#world.machines[index] as ServerMachine;
  }
}

function isDisturbance(fault: Fault): fault is Disturbance {
  return disturbances.some((kind) => kind === fault.kind);
}
