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

/** A follower posts an envelope without a message while it is visible, so that a leader without followers posts nothing. */
interface Envelope<Message> {
  readonly message?: Message;
  /** Whether the follower needs everything. */
  readonly isNew?: true;
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
  /** When a follower was seen last. */
  #followedAt = -Infinity;

  constructor(options: SharingOptions<Message>) {
    this.#options = options;
    this.#channel = new BroadcastChannel(options.name);
    this.#channel.onmessage = ({ data }: MessageEvent<Envelope<Message>>) => this.#received(data);
    this.#timer = setInterval(() => this.#watch(), 1_000);
    void this.#run(false);
    this.#channel.postMessage({ isNew: true });
  }

  post(message: Message): void {
    if (this.#isFollowed()) this.#channel.postMessage({ message } satisfies Envelope<Message>);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopped.abort();
    this.#channel.close();
  }

  #received({ message, isNew }: Envelope<Message>): void {
    if (message === undefined) {
      if (this.#isLeader) this.#welcome(isNew === true);
      return;
    }
    this.#receivedAt = performance.now();
    if (!this.#isLeader) this.#options.received(message);
  }

  #isFollowed(): boolean {
    return performance.now() - this.#followedAt < mostSilenceMs;
  }

  /** A follower that the leader had not seen for long has missed changes. */
  #welcome(isNew: boolean): void {
    const isBehind = isNew || !this.#isFollowed();
    this.#followedAt = performance.now();
    if (isBehind) this.#options.asked();
  }

  #watch(): void {
    if (!this.#isLeader) this.#channel.postMessage({});
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
      this.#followedAt = -Infinity;
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
