/** The cache folder of the user: runtimes, compilers and servers that verification and tests install. */
export declare const cacheFolder: string;

/** A server in a newer release of Debian. */
export interface DebianServer {
  /** For example "Redis 8". */
  readonly title: string;
  readonly suite: string;
  readonly package: string;
}

export declare const debianServers: Readonly<Record<"redis8" | "valkey8" | "valkey9", DebianServer>>;
export type DebianServerName = keyof typeof debianServers;

/** The path of the server's program, whether or not it is installed. */
export declare function debianProgram(name: DebianServerName): string;

/**
 * Unpacks a server into the cache folder, unless it is there.
 * @returns the path of the program
 * @throws {Error} if the server cannot be installed on this machine
 */
export declare function provideDebianServer(name: DebianServerName): string;
