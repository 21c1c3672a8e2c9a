import { manualRandom } from "holdfast/testing";

import type { ClientSetup, Fault, NodeSetup, Schedule, Step, Use, Weather } from "./schedule.ts";

/** What happens, all of it decided by the seed. */
export function scheduleOf(seed: number): Schedule {
  return new Planner(seed).plan();
}

class Planner {
  readonly #seed: number;
  readonly #fraction: () => number;
  readonly #steps: Step[] = [];
  #nodeCount = 0;
  #clientCount = 0;
  #maxTtlMs = 0;
  #keys: readonly string[] = [];
  #peaceAt = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#fraction = manualRandom(seed).fraction;
  }

  plan(): Schedule {
    const weather = this.#pick<Weather>([
      "storm",
      "storm",
      "storm",
      "storm",
      "storm",
      "storm",
      "calm",
      "calm",
      "deaf",
      "duel",
    ]);
    this.#nodeCount = this.#pick([3, 3, 4, 5]);
    this.#clientCount = this.#whole(2, 5);
    this.#keys = this.#chance(0.2) ? ["a", "b"] : ["a"];
    this.#maxTtlMs = weather === "storm" ? this.#pick([600, 1_000, 2_000, 4_000]) : 4_500;
    this.#peaceAt = weather === "storm" ? this.#whole(3_000, 12_000) : 3_000;
    const faultRate = this.#pick([0.5, 1, 2, 4]);
    const isClockFair = weather !== "storm" || this.#chance(0.3);
    const [nodeDrift, clientDrift] = isClockFair
      ? [0, 0]
      : this.#pick([
          [0, 0.0099],
          [0.0099, 0],
          [0.0049, 0.0049],
        ] as const);
    const farMs = this.#pick([0.5, 2, 5]);
    const nodes = this.#times(this.#nodeCount, () => ({
      offsetMs: this.#between(-250, 250),
      rate: 1 + this.#extreme(nodeDrift),
      durable: this.#chance(0.15),
    }));
    const clients = this.#times(this.#clientCount, (index) => this.#client(index, clientDrift, farMs));
    this.#work(weather);
    if (weather === "storm") {
      this.#trouble(faultRate, nodes);
    }
    return {
      seed: this.#seed,
      weather,
      nodes,
      clients,
      maxTtlMs: this.#maxTtlMs,
      claimMs: Math.min(this.#maxTtlMs, this.#pick([150, 400, 1_000])),
      nodeTimeoutMs: this.#pick([20, 50]),
      peaceAt: this.#peaceAt,
      steps: this.#steps.sort((one, other) => one.at - other.at),
    };
  }

  #client(index: number, drift: number, farMs: number): ClientSetup {
    const near = index % this.#nodeCount;
    return {
      offsetMs: this.#between(-3_000, 3_000),
      rate: 1 + this.#extreme(drift),
      handover: this.#chance(0.6),
      delaysMs: this.#times(this.#nodeCount, (node) => (node === near ? 0.1 : this.#between(0.2, farMs))),
      messageDelaysMs: this.#times(this.#nodeCount, (node) =>
        node === near ? 0.1 : this.#between(0.1, farMs),
      ),
    };
  }

  #work(weather: Weather): void {
    if (weather === "duel") {
      this.#duels();
      return;
    }
    const bursts = this.#whole(2, weather === "storm" ? 12 : 6);
    for (let burst = 0; burst < bursts; burst += 1) {
      const begin = this.#between(0, this.#peaceAt * 0.9);
      const spreadMs = this.#pick([0, 1, 20, 500]);
      const uses = this.#whole(1, this.#clientCount + 2);
      for (let i = 0; i < uses; i += 1) {
        this.#steps.push({ at: begin + this.#between(0, spreadMs), ...this.#use(weather) });
      }
    }
  }

  #use(weather: Weather): Use {
    const isTry = weather !== "deaf" && this.#chance(0.25);
    const isStorm = weather === "storm";
    const shortestTtlMs = isStorm ? 100 : 2_000;
    const ttlMs = weather === "deaf" ? this.#maxTtlMs : this.#whole(shortestTtlMs, this.#maxTtlMs);
    const renew = this.#chance(0.6);
    const holdMs = this.#pick([
      0,
      this.#between(0, 20),
      this.#between(0, 300),
      isStorm ? ttlMs * this.#between(0.5, 1.6) : 100,
    ]);
    return {
      kind: isTry ? "try" : "acquire",
      client: this.#whole(0, this.#clientCount - 1),
      key: this.#pick(this.#keys),
      ttlMs,
      waitMs: this.#pick([this.#whole(1, 50), this.#whole(100, 2_000), 10_000, Infinity]),
      renew,
      holdMs,
      ...(this.#chance(0.3) ? { extendAtMs: holdMs * this.#fraction() } : {}),
      ...(this.#chance(0.15) ? { abortMs: this.#pick([this.#between(0, 10), this.#between(0, 1_500)]) } : {}),
    };
  }

  /** The first round makes everybody known to the nodes. */
  #duels(): void {
    for (let client = 0; client < this.#clientCount; client += 1) {
      const warmUp = {
        kind: "acquire",
        client,
        key: "a",
        ttlMs: 2_000,
        waitMs: Infinity,
        renew: true,
        holdMs: 0,
      } as const;
      this.#steps.push({ at: 0, ...warmUp });
    }
    for (let at = duelEveryMs; at < this.#peaceAt; at += duelEveryMs) {
      for (let client = 0; client < this.#clientCount; client += 1) {
        const duel = {
          kind: "try",
          client,
          key: "a",
          ttlMs: 2_000,
          waitMs: 0,
          renew: true,
          holdMs: 200,
        } as const;
        this.#steps.push({ at: at + this.#between(0, 1), ...duel });
      }
    }
  }

  #trouble(perSecond: number, nodes: readonly NodeSetup[]): void {
    const count = Math.round((this.#peaceAt / 1_000) * perSecond * this.#between(0.5, 1.5));
    // Only a minority may ever lose its memory or have its clock set.
    const minority = Math.ceil(this.#nodeCount / 2) - 1;
    const unreliable = new Set(this.#times(minority, () => this.#whole(0, this.#nodeCount - 1)));
    const mayDie = this.#chance(0.4);
    let deaths = 0;
    for (let i = 0; i < count; i += 1) {
      const at = this.#between(0, this.#peaceAt);
      const fault = this.#fault(unreliable, nodes);
      if (fault.kind === "kill client" && (!mayDie || ++deaths > this.#clientCount - 2)) {
        continue;
      }
      this.#steps.push({ at, ...fault });
    }
  }

  #fault(unreliable: ReadonlySet<number>, nodes: readonly NodeSetup[]): Fault {
    const client = this.#whole(0, this.#clientCount - 1);
    const node = this.#whole(0, this.#nodeCount - 1);
    const forMs = this.#pick([this.#between(1, 60), this.#between(60, 600), this.#between(500, 4_000)]);
    const isUnreliable = unreliable.has(node);
    const lateMs = (): number =>
      this.#pick([0, this.#between(0, 10), this.#between(10, 200), this.#between(100, 1_500)]);
    const count = this.#whole(1, 4);
    const kinds: readonly (() => Fault)[] = [
      () => ({ kind: "freeze client", client, forMs, sleeps: this.#chance(0.3) }),
      () => ({ kind: "freeze client", client, forMs, sleeps: false }),
      () => ({ kind: "kill client", client, silent: this.#chance(0.5) }),
      () => ({ kind: "freeze node", node, forMs }),
      () => ({ kind: "cut", client, node, forMs }),
      () => ({ kind: "cut", client, node, forMs }),
      () => ({ kind: "slow", client, node, forMs, delaysMs: [lateMs(), lateMs(), lateMs()] }),
      () => ({ kind: "slow", client, node, forMs, delaysMs: [lateMs(), lateMs(), lateMs()] }),
      () => ({ kind: "lose replies", client, node, count, mode: this.#pick(["silence", "reset"]) }),
      () => ({ kind: "lose messages", client, node, forMs, word: this.#pick(["", "grant", "inquiry"]) }),
      () => ({
        kind: "duplicate",
        client,
        node,
        count,
        afterMs: this.#pick([0, this.#between(0, 50), this.#between(0, 2_000)]),
      }),
      () => ({ kind: "drop subscription", client, node }),
      () => ({
        kind: "restart node",
        node,
        keepData: !isUnreliable || nodes[node]?.durable === true || this.#chance(0.2),
        downMs: this.#pick([0, this.#between(0, 1_000)]),
      }),
      () =>
        isUnreliable
          ? { kind: "step node", node, ms: this.#pick([-10_000, 10_000]) }
          : { kind: "cut", client, node, forMs },
    ];
    return this.#pick(kinds)();
  }

  /** As far as it goes, one way or the other, or anything between. */
  #extreme(share: number): number {
    return this.#pick([-share, share, this.#between(-share, share)]);
  }

  #between(low: number, high: number): number {
    return low + (high - low) * this.#fraction();
  }

  #whole(low: number, high: number): number {
    return low + Math.floor(this.#fraction() * (high - low + 1));
  }

  #chance(probability: number): boolean {
    return this.#fraction() < probability;
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.#whole(0, choices.length - 1)] as T;
  }

  #times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}

/** Longer than a lease that a duel gives. */
const duelEveryMs = 500;
