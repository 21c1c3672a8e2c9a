/** An acquire as the model knows it. */
export interface Ask {
  readonly id: number;
  /** Whose line of acquires: a process and its session. Undefined: each by itself. */
  readonly session: string | undefined;
  /** In whose work it is made. */
  readonly inside: Ask | undefined;
  /** By `withLock`. */
  readonly isWork: boolean;
  /** `Infinity`: it is renewed. */
  readonly ttlMs: number;
  /** When to stop waiting; null: it does not wait. */
  readonly deadline: number | null;
}

export type Outcome =
  "waiting" | "held" | "lost" | "released" | "enough" | "wait-timeout" | "null" | "lease-lost";

/** One hold at the engine, and those who stand on it. */
interface Nest {
  readonly inside: Set<Ask>;
  readonly dueAt: number;
}

/** Who has the turn to enter, and who waits for it. */
interface Turn {
  taken: Ask | undefined;
  readonly waiting: Ask[];
}

/** What a reentrant lock is said to be: one holder, one queue, and nests that are counted. In plain words, to be compared with. */
export class ReentrantModel {
  now: number;
  readonly #outcomes = new Map<Ask, Outcome>();
  readonly #answers = new Map<Ask, boolean>();
  readonly #nests = new Map<Ask, Nest>();
  readonly #turns = new Map<Ask | string, Turn>();
  /** By session: what it had last. */
  readonly #sessions = new Map<string, Nest>();
  readonly #queue: Ask[] = [];
  #holder: Nest | undefined;

  constructor(now: number) {
    this.now = now;
  }

  get isHeld(): boolean {
    return this.#holder !== undefined;
  }

  /** How many wait at the engine. */
  get waiterCount(): number {
    return this.#queue.length;
  }

  outcomeOf(ask: Ask): Outcome | undefined {
    return this.#outcomes.get(ask);
  }

  ask(ask: Ask): void {
    this.#outcomes.set(ask, "waiting");
    const around = this.#around(ask);
    if (around ?? ask.session) {
      this.#take(around ?? (ask.session as string), ask);
    } else {
      this.#askEngine(ask);
    }
  }

  /** The answer of its release. */
  release(ask: Ask): boolean {
    const answered = this.#answers.get(ask);
    if (answered !== undefined) {
      return answered; // one too many
    }
    const nest = this.#nests.get(ask) as Nest;
    const isOurs = this.#holder === nest;
    this.#answers.set(ask, isOurs);
    nest.inside.delete(ask);
    this.#outcomes.set(ask, "released");
    if (isOurs && nest.inside.size === 0) {
      this.#free();
    }
    for (const [of, turn] of this.#turns) {
      if (turn.taken === ask) {
        this.#give(of);
      }
    }
    return isOurs;
  }

  abort(ask: Ask): void {
    this.#refuse(ask, "enough");
  }

  /** The holder loses what it has, if it has something. */
  lose(): void {
    for (const ask of this.#holder?.inside ?? []) {
      this.#outcomes.set(ask, "lost");
    }
    this.#free();
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.#nextEvent(); next <= end; next = this.#nextEvent()) {
      this.now = next;
      if ((this.#holder?.dueAt ?? Infinity) <= next) {
        this.lose();
      }
      for (const [ask, outcome] of this.#outcomes) {
        if (outcome === "waiting" && ask.deadline !== null && ask.deadline <= next) {
          this.#refuse(ask, "wait-timeout");
        }
      }
    }
    this.now = end;
  }

  #nextEvent(): number {
    const waiting = [...this.#outcomes].filter(([, outcome]) => outcome === "waiting").map(([ask]) => ask);
    return Math.min(this.#holder?.dueAt ?? Infinity, ...waiting.map(({ deadline }) => deadline ?? Infinity));
  }

  /** The innermost work around it that has not ended. */
  #around({ inside }: Ask): Ask | undefined {
    let around = inside;
    while (around && this.#outcomes.get(around) === "released") {
      around = around.inside;
    }
    return around;
  }

  #take(of: Ask | string, ask: Ask): void {
    const turn = this.#turns.get(of) ?? { taken: undefined, waiting: [] };
    this.#turns.set(of, turn);
    if (!turn.taken) {
      turn.taken = ask;
      this.#begin(of, ask);
    } else if (ask.deadline === null) {
      this.#outcomes.set(ask, "null");
    } else {
      turn.waiting.push(ask);
    }
  }

  #give(of: Ask | string): void {
    const turn = this.#turns.get(of) as Turn;
    turn.taken = turn.waiting.shift();
    if (turn.taken) {
      this.#begin(of, turn.taken);
    }
  }

  /** It is this one's turn. */
  #begin(of: Ask | string, ask: Ask): void {
    const nest = typeof of === "string" ? this.#sessions.get(of) : this.#nests.get(of);
    const isOurs = nest !== undefined && nest === this.#holder;
    if (typeof of === "string" && !isOurs) {
      this.#askEngine(ask);
    } else if (isOurs && (typeof of === "string" || this.#outcomes.get(of) === "held")) {
      this.#enter(nest, ask);
      if (typeof of === "string" || !ask.isWork) {
        this.#give(of);
      }
    } else {
      this.#outcomes.set(ask, "lease-lost");
      this.#give(of);
    }
  }

  #enter(nest: Nest, ask: Ask): void {
    nest.inside.add(ask);
    this.#nests.set(ask, nest);
    this.#outcomes.set(ask, "held");
  }

  #askEngine(ask: Ask): void {
    this.#queue.push(ask);
    this.#serve();
    if (ask.deadline === null && this.#queue.includes(ask)) {
      this.#refuse(ask, "null");
    }
  }

  #free(): void {
    this.#holder = undefined;
    this.#serve();
  }

  #serve(): void {
    const first = this.#holder ? undefined : this.#queue.shift();
    if (first) {
      const nest = { inside: new Set<Ask>(), dueAt: this.now + first.ttlMs };
      this.#holder = nest;
      this.#enter(nest, first);
      if (first.session !== undefined) {
        this.#sessions.set(first.session, nest);
        this.#giveIfTaken(first);
      }
    }
  }

  /** It waits no more, wherever it did. */
  #refuse(ask: Ask, outcome: Outcome): void {
    this.#outcomes.set(ask, outcome);
    for (const waiting of [this.#queue, ...[...this.#turns.values()].map((turn) => turn.waiting)]) {
      const index = waiting.indexOf(ask);
      if (index >= 0) {
        waiting.splice(index, 1);
      }
    }
    this.#giveIfTaken(ask);
  }

  #giveIfTaken(ask: Ask): void {
    if (ask.session !== undefined && this.#turns.get(ask.session)?.taken === ask) {
      this.#give(ask.session);
    }
  }
}
