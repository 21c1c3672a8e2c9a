/** A Lua script, with the SHA-1 of its source. */
export interface Script {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}
