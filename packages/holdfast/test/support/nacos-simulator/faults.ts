/** A request, as faults see it. */
export interface SimulatedRequest {
  readonly method: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * The fault of a request. `lost`: it is executed, and the connection ends without a reply. `cut`: the connection ends before the
 * execution. `failed`: status 500 without an execution. `failed-late`: status 500 after the execution. `held`: the server has looked
 * whether the configuration exists, and executes the request when the test lets it go. `held-lost`: the same, without a reply.
 */
export type Fault = "lost" | "cut" | "failed" | "failed-late" | "held" | "held-lost";

interface Planned {
  readonly applies: (request: SimulatedRequest) => boolean;
  readonly fault: Fault;
  left: number;
  readonly hit: () => void;
}

/** The planned faults of one server. */
export class Faults {
  /** Ends the wait of the held requests. */
  #held: (() => void)[] = [];
  #planned: Planned[] = [];

  /**
   * Plans a fault for the next requests of a kind.
   * @param count how many requests have the fault
   * @returns a promise for the first one
   */
  plan(fault: Fault, applies: (request: SimulatedRequest) => boolean, count = 1): Promise<void> {
    return new Promise((hit) => this.#planned.push({ applies, fault, left: count, hit }));
  }

  clear(): void {
    this.#planned = [];
  }

  /** Executes the held requests. */
  letGo(): void {
    for (const go of this.#held.splice(0)) {
      go();
    }
  }

  /** The fault of a request, which counts as used. */
  next(request: SimulatedRequest): Fault | undefined {
    const planned = this.#planned.find(({ applies, left }) => left > 0 && applies(request));
    if (planned) {
      planned.left -= 1;
      planned.hit();
    }
    return planned?.fault;
  }

  untilLetGo(): Promise<void> {
    return new Promise((go) => this.#held.push(go));
  }
}

/** Publications. */
export const isPublication = ({ method, path }: SimulatedRequest): boolean =>
  method === "POST" && path.endsWith("/cs/config");

/** Publications of a content that has this property. */
export const publishes =
  (applies: (document: { grant: { token: string } | null; queue: unknown[] }) => boolean) =>
  (request: SimulatedRequest): boolean =>
    isPublication(request) && applies(JSON.parse(request.parameters["content"] ?? "null") as never);
