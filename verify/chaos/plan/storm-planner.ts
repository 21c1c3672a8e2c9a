import type { SeededRandom } from "./chance.ts";
import type { Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";
import { faultProfiles, placementPriority, type FaultProfile } from "./fault-profiles.ts";
import type { ClientSetup, Fault, NodeSetup, Storm } from "./plan.ts";
import { FaultSchedule } from "./reservations.ts";

const maxPlacementAttempts = 300;
/** In the first storms every kind occurs. Some later storms are weaker, so that more work happens between faults. */
const fullStrengthStorms = 2;
/** Time that a fault needs beyond its own duration. `slow` is for a restart, or for a client that must first get a lock. */
const recoveryTimes = { momentary: 200, slow: 3_000, usual: 500, failover: 4_000 } as const;
/** The clocks stay wrong for the largest TTL and this margin, so that every earlier grant has expired. */
const stepMarginMs = 400;

/** Plans one storm after another, without two faults that would end each other. */
export class StormPlanner {
  readonly #engine: Engine;
  readonly #random: SeededRandom;
  readonly #nodes: readonly NodeSetup[];
  /** The servers that are durable in this storm, and those that become durable in it. */
  #durable: ReadonlySet<number>;
  readonly #becoming = new Set<number>();
  readonly #clientCount: number;
  readonly #killableClients: readonly number[];
  /** The kinds that must still occur before any kind repeats. */
  #pendingKinds: FaultKind[] = [];
  #count = 0;
  #storms = 0;
  #stormMs = 0;
  /** The minority that may lose data and have wrong clocks in this storm. */
  #unreliable: readonly number[] = [];
  #schedule = new FaultSchedule();

  constructor(
    engine: Engine,
    random: SeededRandom,
    nodes: readonly NodeSetup[],
    clients: readonly ClientSetup[],
  ) {
    this.#engine = engine;
    this.#random = random;
    this.#nodes = nodes;
    this.#durable = new Set(nodes.flatMap(({ durable }, index) => (durable ? [index] : [])));
    this.#clientCount = clients.length;
    this.#killableClients = clients.flatMap(({ mayBeKilled }, index) => (mayBeKilled ? [index] : []));
  }

  storm(forMs: number): Storm {
    this.#stormMs = forMs;
    this.#schedule = new FaultSchedule();
    const minority = Math.ceil(this.#nodes.length / 2) - 1;
    this.#durable = new Set([...this.#durable, ...this.#becoming]);
    const forgetful = this.#indices().filter((index) => !this.#durable.has(index));
    // At least one of them is without durability, so that faults on such a server find a target.
    const candidates = new Set([
      ...this.#random.shuffled(forgetful).slice(0, 1),
      ...this.#random.shuffled(this.#indices()),
    ]);
    this.#unreliable = [...candidates].slice(0, minority);
    this.#storms += 1;
    const strength = this.#storms <= fullStrengthStorms ? 1 : this.#random.pick([0.3, 0.6, 1]);
    const faultCount = Math.round((forMs / 1_000) * this.#engine.faultsPerSecond * strength);
    const kinds = Array.from({ length: faultCount }, () => this.#nextKind());
    kinds.sort((one, other) => placementPriority(other) - placementPriority(one));
    const faults = kinds.flatMap((kind) => this.#place(kind) ?? []);
    return { forMs, faults: faults.sort((one, other) => one.at - other.at) };
  }

  #nextKind(): FaultKind {
    if (this.#pendingKinds.length === 0) {
      this.#pendingKinds = this.#random.shuffled(this.#engine.faults);
    }
    return this.#pendingKinds.shift() as FaultKind;
  }

  /** One server stays forgetful, so that the faults of such a server find a target. */
  get #mayBecomeDurable(): boolean {
    return new Set([...this.#durable, ...this.#becoming]).size < this.#nodes.length - 1;
  }

  /**
   * Places a fault where and when its targets are free. undefined: no room was found, and the kind comes first in the next storm; or the
   * fault may not occur again.
   */
  #place(kind: FaultKind): Fault | undefined {
    if (kind === "become durable" && !this.#mayBecomeDurable) {
      return undefined;
    }
    for (let attempt = 0; attempt < maxPlacementAttempts; attempt += 1) {
      const fault = this.#drawFault(kind);
      const end = fault.at + fault.forMs;
      if (
        end <= this.#stormMs &&
        this.#schedule.reserve(
          this.#requiredResources(fault),
          fault.at,
          kind === "become durable" ? this.#stormMs : end + recoveryMs(kind), // it is forgetful before, and durable after
        )
      ) {
        this.#count += 1;
        if (kind === "become durable") {
          fault.nodes.forEach((node) => this.#becoming.add(node));
        }
        return fault;
      }
    }
    this.#pendingKinds.unshift(kind);
    return undefined;
  }

  #drawFault(kind: FaultKind): Fault {
    const { target, duration, size } = faultProfiles[kind];
    const random = this.#random;
    const hasClient = target.endsWith("client") || target.endsWith("link") || target.endsWith("links");
    const client =
      target === "mortal client"
        ? random.pick(this.#killableClients)
        : random.integer(0, this.#clientCount - 1);
    return {
      faultId: this.#count,
      kind,
      // A server that becomes durable has no other fault until the end of the storm.
      at: Math.round(
        random.between(kind === "become durable" ? this.#stormMs * 0.6 : 0, this.#stormMs * 0.95),
      ),
      forMs: Math.round(this.#duration(duration)),
      client: hasClient || usesClientAndServers(target) ? client : null,
      nodes: this.#nodesOf(target),
      size: size === undefined ? 0 : this.#sizeOf(size),
    };
  }

  #nodesOf(on: FaultProfile["target"]): readonly number[] {
    const random = this.#random;
    const any = (): number[] => [random.integer(0, this.#nodes.length - 1)];
    const durable = (): number[] => [random.pick(this.#durableNodes())];
    const nodes: Readonly<Record<FaultProfile["target"], () => readonly number[]>> = {
      client: () => [],
      "mortal client": () => [],
      server: any,
      clock: any,
      link: any,
      "all links": () => this.#indices(),
      primary: () => this.#indices(),
      "durable server": durable,
      "held server": durable,
      "forgetful server": () => [random.pick(this.#forgetfulNodes())],
      "forgetful minority": () => this.#forgetfulNodes(),
      "unreliable clock": () => [random.pick(this.#unreliable)],
      "most servers": () =>
        random.shuffled(this.#indices()).slice(0, random.integer(this.#majority(), this.#nodes.length)),
    };
    return nodes[on]();
  }

  #duration(lasts: FaultProfile["duration"]): number {
    const random = this.#random;
    const { maxTtlMs } = this.#engine;
    switch (lasts) {
      case "a moment":
        return 0;
      case "a restart":
        return random.pick([random.between(0, 100), random.between(100, 1_500)]);
      case "as long as a step":
        return maxTtlMs + stepMarginMs + random.between(0, 2_500);
      case "past the TTL":
        return maxTtlMs + random.between(100, 1_500);
      case "within the TTL":
        return random.between(20, maxTtlMs / 2);
      case "long":
        return random.between(2_000, 8_000);
      case "any":
        return random.pick([random.between(20, 200), random.between(200, 1_000), random.between(800, 4_000)]);
    }
  }

  /** In milliseconds. */
  #sizeOf(size: NonNullable<FaultProfile["size"]>): number {
    const random = this.#random;
    switch (size) {
      case "step":
        return random.pick([-10_000, -3_000, 3_000, 10_000]);
      case "step back":
        return -random.integer(5, 100);
      case "delay":
        return Math.round(random.pick([random.between(2, 30), random.between(30, 300)]));
    }
  }

  /** The names that the fault reserves. */
  #requiredResources({ kind, client, nodes }: Fault): string[] {
    const { target } = faultProfiles[kind];
    if (usesClientAndServers(target)) {
      const all = this.#indices();
      return [`client ${client}`, ...all.flatMap((node) => [`server ${node}`, linkName(client, node)])];
    }
    if (target.endsWith("clock")) {
      return nodes.map((node) => `clock ${node}`);
    }
    if (client === null) {
      return nodes.map((node) => `server ${node}`);
    }
    return nodes.length === 0 ? [`client ${client}`] : nodes.map((node) => linkName(client, node));
  }

  #indices(): number[] {
    return this.#nodes.map((_, index) => index);
  }

  #majority(): number {
    return Math.floor(this.#nodes.length / 2) + 1;
  }

  #durableNodes(): number[] {
    const durable = this.#indices().filter((index) => this.#durable.has(index));
    // Without durability the one server still restarts, because the checker must detect the lost data.
    return durable.length > 0 ? durable : this.#indices();
  }

  #forgetfulNodes(): number[] {
    return this.#unreliable.filter((index) => !this.#durable.has(index));
  }
}

/** Whether the fault concerns a client and servers. Then it reserves all servers. */
function usesClientAndServers(on: FaultProfile["target"]): boolean {
  return on === "forgetful minority" || on === "held server";
}

function recoveryMs(kind: FaultKind): number {
  const { duration, target } = faultProfiles[kind];
  if (target === "primary") {
    return duration === "a moment" ? recoveryTimes.usual : recoveryTimes.failover;
  }
  if (duration === "a moment") {
    return recoveryTimes.momentary;
  }
  return duration === "a restart" || duration === "past the TTL" || target === "mortal client"
    ? recoveryTimes.slow
    : recoveryTimes.usual;
}

function linkName(client: number | null, node: number): string {
  return `link ${client} ${node}`;
}
