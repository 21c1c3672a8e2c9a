/** A Lua script that runs atomically on one server, and the SHA-1 by which that server's script cache knows it. */
export interface Script {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}
