/** An acquire in the model. */
export interface ModelRequest {
  readonly id: number;
  /** The process and its session. Undefined if each acquire stands alone. */
  readonly session: string | undefined;
  /** The request whose work contains this acquire. */
  readonly inside: ModelRequest | undefined;
  /** Whether it is a `withLock`. */
  readonly isWork: boolean;
  /** `Infinity` with renewal. */
  readonly ttlMs: number;
  /** When to stop waiting. Null for a try. */
  readonly deadline: number | null;
}

export type Outcome =
  "waiting" | "held" | "lost" | "released" | "enough" | "wait-timeout" | "null" | "lease-lost";

/** One hold at the engine, with the requests that share it. */
interface ModelHold {
  readonly inside: Set<ModelRequest>;
  readonly dueAt: number;
}

/** The request whose turn it is, and the waiting requests. */
interface ModelTurn {
  holder: ModelRequest | undefined;
  readonly waiting: ModelRequest[];
}

/** The specification of a reentrant lock as a simple model: one holder, one queue, and counted nested holds. */
export class ReentrantModel {
  now: number;
  readonly #outcomes = new Map<ModelRequest, Outcome>();
  readonly #answers = new Map<ModelRequest, boolean>();
  readonly #nests = new Map<ModelRequest, ModelHold>();
  readonly #mutexes = new Map<ModelRequest | string, ModelTurn>();
  /** The last hold of each session. */
  readonly #sessions = new Map<string, ModelHold>();
  readonly #queue: ModelRequest[] = [];
  #holder: ModelHold | undefined;

  constructor(now: number) {
    this.now = now;
  }

  get isHeld(): boolean {
    return this.#holder !== undefined;
  }

  /** The number of waiters at the engine. */
  get waiterCount(): number {
    return this.#queue.length;
  }

  outcomeOf(request: ModelRequest): Outcome | undefined {
    return this.#outcomes.get(request);
  }

  request(request: ModelRequest): void {
    this.#outcomes.set(request, "waiting");
    const around = this.#enclosing(request);
    if (around ?? request.session) {
      this.#acquireTurn(around ?? (request.session as string), request);
    } else {
      this.#requestFromEngine(request);
    }
  }

  /** The result of its release. */
  release(request: ModelRequest): boolean {
    const answered = this.#answers.get(request);
    if (answered !== undefined) {
      return answered; // a repeated release
    }
    const hold = this.#nests.get(request) as ModelHold;
    const isHolder = this.#holder === hold;
    this.#answers.set(request, isHolder);
    hold.inside.delete(request);
    this.#outcomes.set(request, "released");
    if (isHolder && hold.inside.size === 0) {
      this.#free();
    }
    for (const [of, turn] of this.#mutexes) {
      if (turn.holder === request) {
        this.#releaseTurn(of);
      }
    }
    return isHolder;
  }

  abort(request: ModelRequest): void {
    this.#refuse(request, "enough");
  }

  /** The holder loses its hold, if one exists. */
  markLost(): void {
    for (const request of this.#holder?.inside ?? []) {
      this.#outcomes.set(request, "lost");
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
      for (const [request, outcome] of this.#outcomes) {
        if (outcome === "waiting" && request.deadline !== null && request.deadline <= next) {
          this.#refuse(request, "wait-timeout");
        }
      }
    }
    this.now = end;
  }

  #nextEvent(): number {
    const waiting = [...this.#outcomes]
      .filter(([, outcome]) => outcome === "waiting")
      .map(([request]) => request);
    return Math.min(this.#holder?.dueAt ?? Infinity, ...waiting.map(({ deadline }) => deadline ?? Infinity));
  }

  /** The innermost running work around the request. */
  #enclosing({ inside }: ModelRequest): ModelRequest | undefined {
    let around = inside;
    while (around && this.#outcomes.get(around) === "released") {
      around = around.inside;
    }
    return around;
  }

  #acquireTurn(of: ModelRequest | string, request: ModelRequest): void {
    const turn = this.#mutexes.get(of) ?? { holder: undefined, waiting: [] };
    this.#mutexes.set(of, turn);
    if (!turn.holder) {
      turn.holder = request;
      this.#startHold(of, request);
    } else if (request.deadline === null) {
      this.#outcomes.set(request, "null");
    } else {
      turn.waiting.push(request);
    }
  }

  #releaseTurn(of: ModelRequest | string): void {
    const turn = this.#mutexes.get(of) as ModelTurn;
    turn.holder = turn.waiting.shift();
    if (turn.holder) {
      this.#startHold(of, turn.holder);
    }
  }

  /** Gives the request its turn. */
  #startHold(of: ModelRequest | string, request: ModelRequest): void {
    const hold = typeof of === "string" ? this.#sessions.get(of) : this.#nests.get(of);
    const isHolder = hold !== undefined && hold === this.#holder;
    if (typeof of === "string" && !isHolder) {
      this.#requestFromEngine(request);
    } else if (isHolder && (typeof of === "string" || this.#outcomes.get(of) === "held")) {
      this.#enterHold(hold, request);
      if (typeof of === "string" || !request.isWork) {
        this.#releaseTurn(of);
      }
    } else {
      this.#outcomes.set(request, "lease-lost");
      this.#releaseTurn(of);
    }
  }

  #enterHold(hold: ModelHold, request: ModelRequest): void {
    hold.inside.add(request);
    this.#nests.set(request, hold);
    this.#outcomes.set(request, "held");
  }

  #requestFromEngine(request: ModelRequest): void {
    this.#queue.push(request);
    this.#serve();
    if (request.deadline === null && this.#queue.includes(request)) {
      this.#refuse(request, "null");
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

  /** Removes the request from every queue. */
  #refuse(request: ModelRequest, outcome: Outcome): void {
    this.#outcomes.set(request, outcome);
    for (const waiting of [this.#queue, ...[...this.#mutexes.values()].map((turn) => turn.waiting)]) {
      const index = waiting.indexOf(request);
      if (index >= 0) {
        waiting.splice(index, 1);
      }
    }
    this.#giveIfTaken(request);
  }

  #giveIfTaken(request: ModelRequest): void {
    if (request.session !== undefined && this.#mutexes.get(request.session)?.holder === request) {
      this.#releaseTurn(request.session);
    }
  }
}
