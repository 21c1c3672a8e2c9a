import type { SeededRandom } from "./dice.ts";
import type { Fault, LinkFault } from "./faults.ts";
import type { Step, ScheduleFrame } from "./schedule.ts";

/** Plans the faults of a storm. */
export function planFaults(frame: ScheduleFrame, random: SeededRandom): Step[] {
  return new FaultPlanner(frame, random).faults();
}

class FaultPlanner {
  readonly #frame: ScheduleFrame;
  readonly #random: SeededRandom;
  /** Nodes that may lose their data or have their clock set: always a minority. */
  readonly #unreliable: ReadonlySet<number>;
  /** A sleep cannot be detected if the clock is set back at the same time. So no machine has both faults. */
  readonly #maySleep: boolean;
  /** One server that loses data while its clock is set back issues old numbers again. So a schedule has only one of these faults. */
  readonly #willLoseData: boolean;

  constructor(frame: ScheduleFrame, random: SeededRandom) {
    this.#frame = frame;
    this.#random = random;
    const { nodes, engine } = frame;
    const minority = Math.ceil(nodes.length / 2) - 1;
    // If the only server loses data, exclusion is not checked. So this fault is rare.
    const count = engine === "server" ? (random.happens(0.25) ? 1 : 0) : Math.max(0, minority);
    this.#unreliable = new Set(Array.from({ length: count }, () => random.integer(0, nodes.length - 1)));
    this.#maySleep = random.happens(0.7);
    this.#willLoseData = engine === "quorum" || random.happens(0.5);
  }

  faults(): Step[] {
    const { quietAt, clients, engine } = this.#frame;
    const random = this.#random;
    const perSecond = random.pick([0.5, 1, 2, 4]) * (engine === "quorum" ? 1 : 0.5);
    const count = Math.round((quietAt / 1_000) * perSecond * random.between(0.5, 1.5));
    const mayDie = engine !== "memory" && random.happens(0.4);
    const steps: Step[] = [];
    let deaths = 0;
    for (let i = 0; i < count; i += 1) {
      const at = random.between(0, quietAt);
      const fault = this.#fault();
      if (fault.kind === "kill client" && (!mayDie || ++deaths > clients.length - 2)) {
        continue;
      }
      steps.push({ at, ...fault });
    }
    return steps;
  }

  #fault(): Fault {
    const random = this.#random;
    const { engine } = this.#frame;
    const client = random.integer(0, this.#frame.clients.length - 1);
    const ofProcess: readonly (() => Fault)[] = [
      () => ({
        kind: "freeze client",
        client,
        forMs: this.#drawDuration(),
        sleeps: this.#maySleep && random.happens(0.5),
      }),
      () => ({ kind: "freeze client", client, forMs: this.#drawDuration(), sleeps: false }),
      () => ({
        kind: "step client",
        client,
        ms: this.#maySleep ? random.between(0, 2_000) : random.upTo(2_000),
      }),
    ];
    if (this.#frame.nodes.length === 0) {
      return random.pick(ofProcess)();
    }
    const node = random.integer(0, this.#frame.nodes.length - 1);
    return random.pick([
      ...ofProcess.slice(0, 2),
      () => (random.happens(0.3) ? (ofProcess[2] as () => Fault)() : this.#linkFault(client, node)),
      (): Fault => ({ kind: "kill client", client, silent: random.happens(0.5) }),
      (): Fault => ({ kind: "freeze node", node, forMs: this.#drawDuration() }),
      (): Fault => this.#restart(node),
      (): Fault =>
        this.#unreliable.has(node) && (engine === "quorum" || !this.#willLoseData)
          ? {
              kind: "step node",
              node,
              ms: random.pick([-10_000, 10_000, random.upTo(2_000), random.upTo(300)]),
            }
          : { kind: "cut", client, node, forMs: this.#drawDuration() },
      ...Array.from({ length: 8 }, () => (): Fault => this.#linkFault(client, node)),
    ])();
  }

  #restart(node: number): Fault {
    const random = this.#random;
    const { engine, nodes } = this.#frame;
    const isSafe = engine === "quorum" && (nodes[node]?.durable === true || random.happens(0.2));
    const losesData = this.#unreliable.has(node) && this.#willLoseData && !isSafe;
    return {
      kind: "restart node",
      node,
      keepData: !losesData,
      downMs: random.pick([0, random.between(0, 1_000)]),
    };
  }

  #linkFault(client: number, node: number): LinkFault {
    const random = this.#random;
    const link = { client, node };
    const forMs = this.#drawDuration();
    const count = random.integer(1, 4);
    const slow = (): LinkFault => ({
      kind: "slow",
      ...link,
      forMs,
      delaysMs: [this.#drawDelay(), this.#drawDelay(), this.#drawDelay()],
    });
    const kinds: readonly (() => LinkFault)[] = [
      () => ({ kind: "cut", ...link, forMs }),
      () => ({ kind: "cut", ...link, forMs }),
      slow,
      slow,
      () => ({ kind: "lose replies", ...link, count, mode: random.pick(["silence", "reset"]) }),
      () => ({ kind: "lose messages", ...link, forMs, event: random.pick(["", "grant", "inquiry"]) }),
      () => ({
        kind: "duplicate",
        ...link,
        count,
        afterMs: random.pick([0, random.between(0, 50), random.between(0, 2_000)]),
      }),
      () => ({ kind: "drop subscription", ...link }),
    ];
    return random.pick(kinds)();
  }

  #drawDuration(): number {
    const random = this.#random;
    return random.pick([random.between(1, 60), random.between(60, 600), random.between(500, 4_000)]);
  }

  #drawDelay(): number {
    const random = this.#random;
    return random.pick([0, random.between(0, 10), random.between(10, 200), random.between(100, 1_500)]);
  }
}
