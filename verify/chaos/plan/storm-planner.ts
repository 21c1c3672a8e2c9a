import type { Chance } from "./chance.ts";
import type { Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";
import { habits, roomOf, type Habit } from "./fault-profiles.ts";
import type { ClientSetup, Fault, NodeSetup, Storm } from "./plan.ts";
import { Reservations } from "./reservations.ts";

const placingAttempts = 300;
/** In the first storms every kind has its turn; of the later ones some are weaker, so that more work is done in between. */
const fullStorms = 2;
/** What a fault takes besides its own time: one of a moment; a restart, or a client that is waited for until it has a lock; others; a failover. */
const extraMs = { momentary: 200, slow: 3_000, usual: 500, failover: 4_000 } as const;
/** The servers' clocks are wrong for so much longer than the largest TTL that nothing outlives it. */
const stepMarginMs = 400;

/** One storm after another, none of which has two faults that would end each other. */
export class StormPlanner {
  readonly #engine: Engine;
  readonly #chance: Chance;
  readonly #nodes: readonly NodeSetup[];
  readonly #clientCount: number;
  readonly #mortal: readonly number[];
  /** Kinds that are dealt before any comes again, so that each has its turn. */
  #deck: FaultKind[] = [];
  #count = 0;
  #storms = 0;
  #stormMs = 0;
  /** The minority that may forget and have wrong clocks in this storm. */
  #unreliable: readonly number[] = [];
  #reserved = new Reservations();

  constructor(engine: Engine, chance: Chance, nodes: readonly NodeSetup[], clients: readonly ClientSetup[]) {
    this.#engine = engine;
    this.#chance = chance;
    this.#nodes = nodes;
    this.#clientCount = clients.length;
    this.#mortal = clients.flatMap(({ mortal }, index) => (mortal ? [index] : []));
  }

  storm(forMs: number): Storm {
    this.#stormMs = forMs;
    this.#reserved = new Reservations();
    const minority = Math.ceil(this.#nodes.length / 2) - 1;
    const forgetful = this.#indices().filter((index) => this.#nodes[index]?.durable === false);
    // One that can forget is among them, so that the faults that need one find it.
    const candidates = new Set([
      ...this.#chance.shuffled(forgetful).slice(0, 1),
      ...this.#chance.shuffled(this.#indices()),
    ]);
    this.#unreliable = [...candidates].slice(0, minority);
    this.#storms += 1;
    const strength = this.#storms <= fullStorms ? 1 : this.#chance.pick([0.3, 0.6, 1]);
    const wanted = Math.round((forMs / 1_000) * this.#engine.faultsPerSecond * strength);
    const kinds = Array.from({ length: wanted }, () => this.#deal());
    kinds.sort((one, other) => roomOf(other) - roomOf(one));
    const faults = kinds.flatMap((kind) => this.#placed(kind) ?? []);
    return { forMs, faults: faults.sort((one, other) => one.at - other.at) };
  }

  #deal(): FaultKind {
    if (this.#deck.length === 0) {
      this.#deck = this.#chance.shuffled(this.#engine.faults);
    }
    return this.#deck.shift() as FaultKind;
  }

  /** Where and when nothing else happens to the same; undefined: it found no room, and is dealt first in the next storm. */
  #placed(kind: FaultKind): Fault | undefined {
    for (let attempt = 0; attempt < placingAttempts; attempt += 1) {
      const fault = this.#drawn(kind);
      const end = fault.at + fault.forMs;
      if (end <= this.#stormMs && this.#reserved.take(this.#needs(fault), fault.at, end + extraOf(kind))) {
        this.#count += 1;
        return fault;
      }
    }
    this.#deck.unshift(kind);
    return undefined;
  }

  #drawn(kind: FaultKind): Fault {
    const { on, lasts, size } = habits[kind];
    const chance = this.#chance;
    const hasClient = on.endsWith("client") || on.endsWith("way") || on.endsWith("ways");
    const client =
      on === "mortal client" ? chance.pick(this.#mortal) : chance.whole(0, this.#clientCount - 1);
    return {
      number: this.#count,
      kind,
      at: Math.round(chance.between(0, this.#stormMs * 0.95)),
      forMs: Math.round(this.#duration(lasts)),
      client: hasClient || takesServers(on) ? client : null,
      nodes: this.#nodesOf(on),
      size: size === undefined ? 0 : this.#sizeOf(size),
    };
  }

  #nodesOf(on: Habit["on"]): readonly number[] {
    const chance = this.#chance;
    const any = (): number[] => [chance.whole(0, this.#nodes.length - 1)];
    const durable = (): number[] => [chance.pick(this.#durable())];
    const nodes: Readonly<Record<Habit["on"], () => readonly number[]>> = {
      client: () => [],
      "mortal client": () => [],
      server: any,
      clock: any,
      way: any,
      "all ways": () => this.#indices(),
      primary: () => this.#indices(),
      "durable server": durable,
      "held server": durable,
      "forgetful server": () => [chance.pick(this.#forgetting())],
      "forgetful minority": () => this.#forgetting(),
      "unreliable clock": () => [chance.pick(this.#unreliable)],
      "most servers": () =>
        chance.shuffled(this.#indices()).slice(0, chance.whole(this.#majority(), this.#nodes.length)),
    };
    return nodes[on]();
  }

  #duration(lasts: Habit["lasts"]): number {
    const chance = this.#chance;
    const { maxTtlMs } = this.#engine;
    switch (lasts) {
      case "a moment":
        return 0;
      case "a restart":
        return chance.pick([chance.between(0, 100), chance.between(100, 1_500)]);
      case "as long as a step":
        return maxTtlMs + stepMarginMs + chance.between(0, 2_500);
      case "past the TTL":
        return maxTtlMs + chance.between(100, 1_500);
      case "within the TTL":
        return chance.between(20, maxTtlMs / 2);
      case "long":
        return chance.between(2_000, 8_000);
      case "any":
        return chance.pick([chance.between(20, 200), chance.between(200, 1_000), chance.between(800, 4_000)]);
    }
  }

  /** Milliseconds. */
  #sizeOf(size: NonNullable<Habit["size"]>): number {
    const chance = this.#chance;
    switch (size) {
      case "step":
        return chance.pick([-10_000, -3_000, 3_000, 10_000]);
      case "step back":
        return -chance.whole(5, 100);
      case "delay":
        return Math.round(chance.pick([chance.between(2, 30), chance.between(30, 300)]));
    }
  }

  /** What nothing else may happen to meanwhile. */
  #needs({ kind, client, nodes }: Fault): string[] {
    const { on } = habits[kind];
    if (takesServers(on)) {
      const all = this.#indices();
      return [`client ${client}`, ...all.flatMap((node) => [`server ${node}`, way(client, node)])];
    }
    if (on.endsWith("clock")) {
      return nodes.map((node) => `clock ${node}`);
    }
    if (client === null) {
      return nodes.map((node) => `server ${node}`);
    }
    return nodes.length === 0 ? [`client ${client}`] : nodes.map((node) => way(client, node));
  }

  #indices(): number[] {
    return this.#nodes.map((_, index) => index);
  }

  #majority(): number {
    return Math.floor(this.#nodes.length / 2) + 1;
  }

  #durable(): number[] {
    const durable = this.#indices().filter((index) => this.#nodes[index]?.durable === true);
    // Without durability the one server is restarted all the same: that is what has to be found.
    return durable.length > 0 ? durable : this.#indices();
  }

  #forgetting(): number[] {
    return this.#unreliable.filter((index) => this.#nodes[index]?.durable === false);
  }
}

/** It happens to a client and to servers, and all servers are left alone meanwhile. */
function takesServers(on: Habit["on"]): boolean {
  return on === "forgetful minority" || on === "held server";
}

function extraOf(kind: FaultKind): number {
  const { lasts, on } = habits[kind];
  if (on === "primary") {
    return lasts === "a moment" ? extraMs.usual : extraMs.failover;
  }
  if (lasts === "a moment") {
    return extraMs.momentary;
  }
  return lasts === "a restart" || lasts === "past the TTL" || on === "mortal client"
    ? extraMs.slow
    : extraMs.usual;
}

function way(client: number | null, node: number): string {
  return `way ${client} ${node}`;
}
