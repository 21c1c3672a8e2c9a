import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

import type { Endpoint } from "./url.ts";
import type { TlsFiles } from "./options.ts";

/** The settings that both client libraries pass to `tls.connect`. */
export interface TlsSettings {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/** @throws {TypeError} with the name of the option whose file cannot be read */
export async function loadTls(files: TlsFiles | undefined): Promise<TlsSettings | undefined> {
  if (files === undefined) {
    return undefined;
  }
  const { caFile, certFile, keyFile, servername, isVerified } = files;
  if (!isVerified) {
    process.emitWarning("tlsVerify is false, so any server can pretend to be the requested server", {
      code: "HOLDFAST_TLS_NOT_VERIFIED",
    });
  }
  const [ca, cert, key] = await Promise.all([
    read("tlsCaFile", caFile),
    read("tlsCertFile", certFile),
    read("tlsKeyFile", keyFile),
  ]);
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(servername !== undefined && { servername }),
    rejectUnauthorized: isVerified,
  };
}

/** The TLS settings for one server, with its name for SNI, because Node adds that name only for HTTPS. */
export function tlsTo(endpoint: Endpoint, tls: TlsSettings | undefined): TlsSettings | undefined {
  return tls === undefined || "path" in endpoint || isIP(endpoint.host) !== 0
    ? tls
    : { servername: endpoint.host, ...tls };
}

async function read(name: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) {
    return undefined;
  }
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new TypeError(
      `Expected \`${name}\` to be a file that can be read, got ${JSON.stringify(path)} (${code})`,
      { cause: error },
    );
  }
}
