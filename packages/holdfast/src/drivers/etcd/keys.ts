/** The keys of one prefix in etcd. The NUL character, which no key of a lock has, ends the key of a lock. */
export class Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The grant of a key. */
  grant(key: string): string {
    return `${this.#prefix}grant/${key}`;
  }

  /** The queue entry of a token. Without a token: the start of all entries of the key. */
  entry(key: string, token = ""): string {
    return `${this.#prefix}queue/${key}\0${token}`;
  }

  /** Says that the grant of a token was broken. */
  broken(key: string, token: string): string {
    return `${this.#prefix}broken/${key}\0${token}`;
  }

  /** The record of the break of a grant. */
  record(key: string, fencingToken: bigint): string {
    return `${this.records}${key}\0${fencingToken}`;
  }

  /** The start of all records. */
  get records(): string {
    return `${this.#prefix}audit/`;
  }

  /** The grant of a record. @param text the key of the record */
  grantOfRecord(text: string): { key: string; fencingToken: bigint } {
    const [key = "", fencingToken = "0"] = text.slice(this.records.length).split("\0");
    return { key, fencingToken: BigInt(fencingToken) };
  }

  /** The start of all keys. */
  get all(): string {
    return this.#prefix;
  }

  /** The key of the lock whose grant has this key; undefined: another key. */
  keyOfGrant(text: string): string | undefined {
    const start = this.grant("");
    return text.startsWith(start) ? text.slice(start.length) : undefined;
  }
}

export function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

export function decode(text: string | undefined): string {
  return Buffer.from(text ?? "", "base64").toString();
}

/** All keys that start with a text. */
export function startingWith(text: string): { key: string; range_end: string } {
  const end = Buffer.from(text);
  const last = end.length - 1;
  end[last] = (end[last] as number) + 1; // UTF-8 has no byte 255
  return { key: encode(text), range_end: end.toString("base64") };
}
