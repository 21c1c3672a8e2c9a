/** A part of the pages of one browser that share one stream. */
export interface Sharing<Message> {
  post(message: Message): void;
  stop(): void;
}

export interface SharingOptions<Message> {
  readonly name: string;
  /** Called when this tab becomes the leader. The returned function ends its work. */
  lead(): () => void;
  received(message: Message): void;
  /** Called when another tab needs everything. */
  asked(): void;
}

/** A leader posts at least once a second. A leader that is silent for this long is frozen, and its lock is taken. */
const mostSilenceMs = 6_000;

interface Envelope<Message> {
  readonly message?: Message;
}

/**
 * Elects one leader among the visible tabs with the same name. The leader holds a lock of the browser, which ends with its tab. Without
 * such locks (an insecure address), every visible tab leads.
 */
export function share<Message>(options: SharingOptions<Message>): Sharing<Message> {
  if (navigator.locks === undefined) {
    const end = options.lead();
    return { post: () => undefined, stop: end };
  }
  return new Tab(options);
}

class Tab<Message> implements Sharing<Message> {
  readonly #options: SharingOptions<Message>;
  readonly #channel: BroadcastChannel;
  readonly #stopped = new AbortController();
  readonly #timer: ReturnType<typeof setInterval>;
  #isLeader = false;
  #receivedAt = performance.now();

  constructor(options: SharingOptions<Message>) {
    this.#options = options;
    this.#channel = new BroadcastChannel(options.name);
    this.#channel.onmessage = ({ data }: MessageEvent<Envelope<Message>>) => this.#received(data);
    this.#timer = setInterval(() => this.#watch(), 1_000);
    void this.#run(false);
    this.#channel.postMessage({});
  }

  post(message: Message): void {
    this.#channel.postMessage({ message } satisfies Envelope<Message>);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopped.abort();
    this.#channel.close();
  }

  #received({ message }: Envelope<Message>): void {
    if (message === undefined) {
      if (this.#isLeader) this.#options.asked();
      return;
    }
    this.#receivedAt = performance.now();
    if (!this.#isLeader) this.#options.received(message);
  }

  #watch(): void {
    if (!this.#isLeader && performance.now() - this.#receivedAt > mostSilenceMs) {
      this.#receivedAt = performance.now();
      void this.#run(true);
    }
  }

  /** Never rejects: a leader whose lock was taken waits for it again. */
  async #run(steal: boolean): Promise<void> {
    const { signal } = this.#stopped;
    const lead = async (): Promise<void> => {
      if (signal.aborted) return;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    };
    let end: (() => void) | undefined;
    const granted = (): Promise<void> => {
      this.#isLeader = true;
      end = this.#options.lead();
      return lead();
    };
    try {
      await navigator.locks.request(this.#options.name, steal ? { steal: true } : { signal }, granted);
    } catch {
      // the lock was taken, or this tab was stopped while it waited
    } finally {
      this.#isLeader = false;
      this.#receivedAt = performance.now();
      end?.();
    }
    if (!signal.aborted) await this.#run(false);
  }
}
