import type { Dice } from "./dice.ts";
import type { Fault, LinkFault } from "./faults.ts";
import type { Frame } from "./planner.ts";
import type { Step } from "./schedule.ts";

/** What goes wrong in a storm. */
export function faultsOf(frame: Frame, dice: Dice): Step[] {
  return new Storm(frame, dice).faults();
}

class Storm {
  readonly #frame: Frame;
  readonly #dice: Dice;
  /** Nodes that may lose their memory or have their clock set: ever only a minority. */
  readonly #unreliable: ReadonlySet<number>;
  /** A clock that stands still while it is set back tells nothing: no machine has both. */
  readonly #maySleep: boolean;
  /** One server that forgets and whose clock is set back gives old numbers again: it does one of the two. */
  readonly #forgets: boolean;

  constructor(frame: Frame, dice: Dice) {
    this.#frame = frame;
    this.#dice = dice;
    const { nodes, engine } = frame;
    const minority = Math.ceil(nodes.length / 2) - 1;
    // One server that forgets is a world in which exclusion is not judged: seldom.
    const count = engine === "server" ? (dice.chance(0.25) ? 1 : 0) : Math.max(0, minority);
    this.#unreliable = new Set(Array.from({ length: count }, () => dice.whole(0, nodes.length - 1)));
    this.#maySleep = dice.chance(0.7);
    this.#forgets = engine === "quorum" || dice.chance(0.5);
  }

  faults(): Step[] {
    const { peaceAt, clients, engine } = this.#frame;
    const dice = this.#dice;
    const perSecond = dice.pick([0.5, 1, 2, 4]) * (engine === "quorum" ? 1 : 0.5);
    const count = Math.round((peaceAt / 1_000) * perSecond * dice.between(0.5, 1.5));
    const mayDie = engine !== "memory" && dice.chance(0.4);
    const steps: Step[] = [];
    let deaths = 0;
    for (let i = 0; i < count; i += 1) {
      const at = dice.between(0, peaceAt);
      const fault = this.#fault();
      if (fault.kind === "kill client" && (!mayDie || ++deaths > clients.length - 2)) {
        continue;
      }
      steps.push({ at, ...fault });
    }
    return steps;
  }

  #fault(): Fault {
    const dice = this.#dice;
    const { engine } = this.#frame;
    const client = dice.whole(0, this.#frame.clients.length - 1);
    const ofProcess: readonly (() => Fault)[] = [
      () => ({
        kind: "freeze client",
        client,
        forMs: this.#forMs(),
        sleeps: this.#maySleep && dice.chance(0.5),
      }),
      () => ({ kind: "freeze client", client, forMs: this.#forMs(), sleeps: false }),
      () => ({
        kind: "step client",
        client,
        ms: this.#maySleep ? dice.between(0, 2_000) : dice.extreme(2_000),
      }),
    ];
    if (this.#frame.nodes.length === 0) {
      return dice.pick(ofProcess)();
    }
    const node = dice.whole(0, this.#frame.nodes.length - 1);
    return dice.pick([
      ...ofProcess.slice(0, 2),
      () => (dice.chance(0.3) ? (ofProcess[2] as () => Fault)() : this.#linkFault(client, node)),
      (): Fault => ({ kind: "kill client", client, silent: dice.chance(0.5) }),
      (): Fault => ({ kind: "freeze node", node, forMs: this.#forMs() }),
      (): Fault => this.#restart(node),
      (): Fault =>
        this.#unreliable.has(node) && (engine === "quorum" || !this.#forgets)
          ? {
              kind: "step node",
              node,
              ms: dice.pick([-10_000, 10_000, dice.extreme(2_000), dice.extreme(300)]),
            }
          : { kind: "cut", client, node, forMs: this.#forMs() },
      ...Array.from({ length: 8 }, () => (): Fault => this.#linkFault(client, node)),
    ])();
  }

  #restart(node: number): Fault {
    const dice = this.#dice;
    const { engine, nodes } = this.#frame;
    const isSafe = engine === "quorum" && (nodes[node]?.durable === true || dice.chance(0.2));
    const forgets = this.#unreliable.has(node) && this.#forgets && !isSafe;
    return {
      kind: "restart node",
      node,
      keepData: !forgets,
      downMs: dice.pick([0, dice.between(0, 1_000)]),
    };
  }

  #linkFault(client: number, node: number): LinkFault {
    const dice = this.#dice;
    const link = { client, node };
    const forMs = this.#forMs();
    const count = dice.whole(1, 4);
    const slow = (): LinkFault => ({
      kind: "slow",
      ...link,
      forMs,
      delaysMs: [this.#lateMs(), this.#lateMs(), this.#lateMs()],
    });
    const kinds: readonly (() => LinkFault)[] = [
      () => ({ kind: "cut", ...link, forMs }),
      () => ({ kind: "cut", ...link, forMs }),
      slow,
      slow,
      () => ({ kind: "lose replies", ...link, count, mode: dice.pick(["silence", "reset"]) }),
      () => ({ kind: "lose messages", ...link, forMs, word: dice.pick(["", "grant", "inquiry"]) }),
      () => ({
        kind: "duplicate",
        ...link,
        count,
        afterMs: dice.pick([0, dice.between(0, 50), dice.between(0, 2_000)]),
      }),
      () => ({ kind: "drop subscription", ...link }),
    ];
    return dice.pick(kinds)();
  }

  #forMs(): number {
    const dice = this.#dice;
    return dice.pick([dice.between(1, 60), dice.between(60, 600), dice.between(500, 4_000)]);
  }

  #lateMs(): number {
    const dice = this.#dice;
    return dice.pick([0, dice.between(0, 10), dice.between(10, 200), dice.between(100, 1_500)]);
  }
}
