/** A Lua script, which a server runs atomically, with the SHA-1 that names the script in the server's script cache. */
export interface Script {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}
