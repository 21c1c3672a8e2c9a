/** An acquire as the model knows it. */
export interface ModelRequest {
  readonly id: number;
  /** Whose line of acquires: a process and its session. Undefined: each by itself. */
  readonly session: string | undefined;
  /** In whose work it is made. */
  readonly inside: ModelRequest | undefined;
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
interface ModelHold {
  readonly inside: Set<ModelRequest>;
  readonly dueAt: number;
}

/** Who has the turn to enter, and who waits for it. */
interface ModelTurn {
  holder: ModelRequest | undefined;
  readonly waiting: ModelRequest[];
}

/** What a reentrant lock is said to be: one holder, one queue, and nests that are counted. In plain words, to be compared with. */
export class ReentrantModel {
  now: number;
  readonly #outcomes = new Map<ModelRequest, Outcome>();
  readonly #answers = new Map<ModelRequest, boolean>();
  readonly #nests = new Map<ModelRequest, ModelHold>();
  readonly #mutexes = new Map<ModelRequest | string, ModelTurn>();
  /** By session: what it had last. */
  readonly #sessions = new Map<string, ModelHold>();
  readonly #queue: ModelRequest[] = [];
  #holder: ModelHold | undefined;

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

  outcomeOf(ask: ModelRequest): Outcome | undefined {
    return this.#outcomes.get(ask);
  }

  request(ask: ModelRequest): void {
    this.#outcomes.set(ask, "waiting");
    const around = this.#enclosing(ask);
    if (around ?? ask.session) {
      this.#acquireTurn(around ?? (ask.session as string), ask);
    } else {
      this.#requestFromEngine(ask);
    }
  }

  /** The answer of its release. */
  release(ask: ModelRequest): boolean {
    const answered = this.#answers.get(ask);
    if (answered !== undefined) {
      return answered; // one too many
    }
    const hold = this.#nests.get(ask) as ModelHold;
    const isHolder = this.#holder === hold;
    this.#answers.set(ask, isHolder);
    hold.inside.delete(ask);
    this.#outcomes.set(ask, "released");
    if (isHolder && hold.inside.size === 0) {
      this.#free();
    }
    for (const [of, turn] of this.#mutexes) {
      if (turn.holder === ask) {
        this.#releaseTurn(of);
      }
    }
    return isHolder;
  }

  abort(ask: ModelRequest): void {
    this.#refuse(ask, "enough");
  }

  /** The holder loses what it has, if it has something. */
  markLost(): void {
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
        this.markLost();
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
  #enclosing({ inside }: ModelRequest): ModelRequest | undefined {
    let around = inside;
    while (around && this.#outcomes.get(around) === "released") {
      around = around.inside;
    }
    return around;
  }

  #acquireTurn(of: ModelRequest | string, ask: ModelRequest): void {
    const turn = this.#mutexes.get(of) ?? { holder: undefined, waiting: [] };
    this.#mutexes.set(of, turn);
    if (!turn.holder) {
      turn.holder = ask;
      this.#startHold(of, ask);
    } else if (ask.deadline === null) {
      this.#outcomes.set(ask, "null");
    } else {
      turn.waiting.push(ask);
    }
  }

  #releaseTurn(of: ModelRequest | string): void {
    const turn = this.#mutexes.get(of) as ModelTurn;
    turn.holder = turn.waiting.shift();
    if (turn.holder) {
      this.#startHold(of, turn.holder);
    }
  }

  /** It is this one's turn. */
  #startHold(of: ModelRequest | string, ask: ModelRequest): void {
    const hold = typeof of === "string" ? this.#sessions.get(of) : this.#nests.get(of);
    const isHolder = hold !== undefined && hold === this.#holder;
    if (typeof of === "string" && !isHolder) {
      this.#requestFromEngine(ask);
    } else if (isHolder && (typeof of === "string" || this.#outcomes.get(of) === "held")) {
      this.#enterHold(hold, ask);
      if (typeof of === "string" || !ask.isWork) {
        this.#releaseTurn(of);
      }
    } else {
      this.#outcomes.set(ask, "lease-lost");
      this.#releaseTurn(of);
    }
  }

  #enterHold(hold: ModelHold, ask: ModelRequest): void {
    hold.inside.add(ask);
    this.#nests.set(ask, hold);
    this.#outcomes.set(ask, "held");
  }

  #requestFromEngine(ask: ModelRequest): void {
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
      const hold = { inside: new Set<ModelRequest>(), dueAt: this.now + first.ttlMs };
      this.#holder = hold;
      this.#enterHold(hold, first);
      if (first.session !== undefined) {
        this.#sessions.set(first.session, hold);
        this.#giveIfTaken(first);
      }
    }
  }

  /** It waits no more, wherever it did. */
  #refuse(ask: ModelRequest, outcome: Outcome): void {
    this.#outcomes.set(ask, outcome);
    for (const waiting of [this.#queue, ...[...this.#mutexes.values()].map((turn) => turn.waiting)]) {
      const index = waiting.indexOf(ask);
      if (index >= 0) {
        waiting.splice(index, 1);
      }
    }
    this.#giveIfTaken(ask);
  }

  #giveIfTaken(ask: ModelRequest): void {
    if (ask.session !== undefined && this.#mutexes.get(ask.session)?.holder === ask) {
      this.#releaseTurn(ask.session);
    }
  }
}
