import { codes, hasCode } from "./wire/errors.ts";
import { create, exists, getData, remove, setData, type Access, type Operation } from "./wire/operations.ts";
import type { Session } from "./wire/session.ts";
import type { ServerTime } from "./grants.ts";
import type { Paths } from "./paths.ts";

/** The break of a grant, as its holder's driver reads it. */
interface Break {
  readonly token: string;
  readonly reason: string;
}

const maxBreaks = 50;

/**
 * An ephemeral node of this driver. A driver that breaks a grant writes the break to the inbox of the holder's driver, which watches
 * this node.
 */
export class Inbox {
  readonly id: string;
  readonly #session: Session;
  readonly #paths: Paths;
  readonly #access: Access;
  readonly #time: ServerTime;
  /** The reasons of the breaks, by token. */
  readonly #breaks = new Map<string, string>();

  constructor(id: string, session: Session, paths: Paths, access: Access, time: ServerTime) {
    this.id = id;
    this.#session = session;
    this.#paths = paths;
    this.#access = access;
    this.#time = time;
  }

  get path(): string {
    return this.#paths.client(this.id);
  }

  /** Why the grant of a token was broken; undefined: it was not, as far as known. */
  reasonOf(token: string): string | undefined {
    return this.#breaks.get(token);
  }

  /** Creates the node for a new session. */
  async open(): Promise<void> {
    const node = create(this.path, "[]", "ephemeral", this.#access);
    try {
      const { stat } = await this.#session.request(node);
      if (stat) {
        this.#time.learn(stat.changedAt);
      }
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        await this.createParents();
        await this.open();
      } else if (hasCode(error, codes.nodeExists)) {
        await this.#session.request(remove(this.path)); // an ended session left the node
        await this.open();
      } else {
        throw error;
      }
    }
  }

  /** Creates the persistent nodes of the driver. */
  async createParents(): Promise<void> {
    const { root, clients, locks, audit } = this.#paths;
    const names = root.split("/").slice(1);
    const parents = names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
    for (const path of [...parents, locks, clients, audit]) {
      await this.#createIfMissing(path);
    }
  }

  async #createIfMissing(path: string): Promise<void> {
    try {
      await this.#session.request(create(path, "", "persistent", this.#access));
    } catch (error) {
      if (hasCode(error, codes.noAuth)) {
        const isThere = this.#session.request(exists(path)); // the parent may belong to another user
        await isThere.catch(() => Promise.reject(error as Error));
      } else if (!hasCode(error, codes.nodeExists)) {
        throw error;
      }
    }
  }

  /**
   * Reads the breaks. The next change of the node is reported to the session. A missing node is created, because the first connection of
   * a session may have ended before {@link open}.
   * @returns the tokens of new breaks
   */
  async read(): Promise<string[]> {
    const data = await this.#watchedData();
    if (data === undefined) {
      await this.open();
      return this.read();
    }
    const added = (JSON.parse(data) as Break[]).filter(({ token }) => !this.#breaks.has(token));
    for (const { token, reason } of added) {
      this.#breaks.set(token, reason);
      if (this.#breaks.size > maxBreaks) {
        this.#breaks.delete(this.#breaks.keys().next().value as string);
      }
    }
    return added.map(({ token }) => token);
  }

  async #watchedData(): Promise<string | undefined> {
    try {
      return (await this.#session.request(getData(this.path, true))).data;
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        return undefined;
      }
      throw error;
    }
  }

  /** The operation that reports a break to another inbox; undefined: that driver has no session now. */
  async reportTo(client: string, added: Break): Promise<Operation<unknown> | undefined> {
    const path = this.#paths.client(client);
    try {
      const { data, stat } = await this.#session.request(getData(path));
      const breaks = [...(JSON.parse(data) as Break[]), added].slice(-maxBreaks);
      return setData(path, JSON.stringify(breaks), stat.version);
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        return undefined;
      }
      throw error;
    }
  }
}
