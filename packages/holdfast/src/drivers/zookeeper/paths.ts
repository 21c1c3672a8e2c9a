const heldPattern = /^held-([^-]+)-[^-]+$/;
const entryPattern = /^wait-([^-]+)-(?:t(-?\d+)-)?(-?\d{10})$/;

/** The grant of a lock, by the name of its node. */
interface HeldNode {
  readonly path: string;
  readonly token: string;
}

/** A queue entry, by the name of its node. */
export interface EntryNode extends HeldNode {
  /** The sequence number of the token's first entry. */
  readonly ticket: number;
}

/** The nodes of one lock, at one moment. */
export interface View {
  readonly held: HeldNode | undefined;
  /** In queue order. */
  readonly entries: readonly EntryNode[];
}

export const emptyView: View = { held: undefined, entries: [] };

// The nodes under the root.
//
// `locks/<key>` is a container, which the server removes when it is empty.
//
// `locks/<key>/grant` exists while the lock is held. Only one node can have this name, which is the exclusion.
//
// `locks/<key>/held-<token>-<id>` is the grant, created and removed in one transaction with `grant`. Each grant has an id of its own, so
// a late request for an earlier grant changes no other grant.
//
// `locks/<key>/wait-<token>-<number>` is an ephemeral queue entry. If an earlier entry was lost, `t<ticket>-` precedes the number.
//
// `clients/<id>` is the ephemeral inbox of one driver.
//
// `audit/break-<number>` is the record of a break.

/** The paths of nodes. */
export class Paths {
  readonly root: string;
  readonly locks: string;
  readonly clients: string;
  readonly audit: string;

  /** @param root starts with a slash */
  constructor(root: string) {
    this.root = root === "/" ? "" : root;
    this.locks = `${this.root}/locks`;
    this.clients = `${this.root}/clients`;
    this.audit = `${this.root}/audit`;
  }

  lock(key: string): string {
    return `${this.locks}/${encodeName(key)}`;
  }

  grant(key: string): string {
    return `${this.lock(key)}/grant`;
  }

  held(key: string, token: string, id: string): string {
    return `${this.lock(key)}/held-${encodeName(token)}-${id}`;
  }

  /** The start of a queue entry's name, to which the server adds a number. */
  entry(key: string, token: string, ticket: number | undefined): string {
    const place = ticket === undefined ? "" : `t${ticket}-`;
    return `${this.lock(key)}/wait-${encodeName(token)}-${place}`;
  }

  client(id: string): string {
    return `${this.clients}/${id}`;
  }

  /** The start of a record's name, to which the server adds a number. */
  get record(): string {
    return `${this.audit}/break-`;
  }

  /** The number of a record; undefined: the path is not that of a record. */
  idOf(path: string): string | undefined {
    const [, digits] = /\/break-(\d{10})$/.exec(path) ?? [];
    return digits === undefined ? undefined : String(Number(digits));
  }

  /** @param names the children of a lock's node. Other names than those of the driver are ignored */
  view(key: string, names: readonly string[]): View {
    const lock = this.lock(key);
    const entries: EntryNode[] = [];
    let held: HeldNode | undefined;
    for (const name of names) {
      const path = `${lock}/${name}`;
      const [, holder] = heldPattern.exec(name) ?? [];
      const [, waiter, ticket, number] = entryPattern.exec(name) ?? [];
      const token = decodeName(holder ?? waiter ?? "");
      if (token === undefined) {
        continue;
      } else if (holder !== undefined) {
        held = { path, token };
      } else if (waiter !== undefined) {
        entries.push({ path, token, ticket: Number(ticket ?? number) });
      }
    }
    return { held, entries: entries.sort((a, b) => compareTickets(a.ticket, b.ticket)) };
  }
}

/** A sequence number has 32 bits and a sign, and wraps around. */
export function compareTickets(a: number, b: number): number {
  return (a - b) | 0;
}

/** A text as the name of a node. Every byte of UTF-8 but letters, digits and `_` is written as `%XX`. */
export function encodeName(text: string): string {
  let name = "";
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    name += /\w/.test(character) ? character : `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
  }
  return name;
}

/** @returns undefined for a name that `encodeName` never returns */
export function decodeName(name: string): string | undefined {
  try {
    const text = decodeURIComponent(name);
    return encodeName(text) === name ? text : undefined;
  } catch {
    return undefined;
  }
}
