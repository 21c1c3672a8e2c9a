import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** PEM files for servers with TLS, in one folder. The program `openssl` makes them. */
export interface Certificates extends AsyncDisposable {
  /** The certificate authority that signed `certFile`. */
  readonly caFile: string;
  /** A certificate for "localhost" and 127.0.0.1, which clients can use too. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The arguments of a server with TLS. */
  serverArgs(port: number, options?: { readonly requireClientCertificate?: boolean }): string[];
}

export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-tls-"));
  const file = (name: string): string => join(folder, name);
  const [caFile, caKeyFile, certFile, keyFile] = ["ca.pem", "ca.key", "server.pem", "server.key"].map(
    file,
  ) as [string, string, string, string];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  try {
    await openssl(
      "req",
      "-x509",
      ...key,
      "-keyout",
      caKeyFile,
      "-out",
      caFile,
      "-subj",
      "/CN=holdfast-lab",
      "-days",
      "2",
    );
    await openssl(
      "req",
      "-new",
      ...key,
      "-keyout",
      keyFile,
      "-out",
      file("server.csr"),
      "-subj",
      "/CN=server",
    );
    await writeFile(file("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    const ca = ["-CA", caFile, "-CAkey", caKeyFile, "-CAcreateserial", "-extfile", file("names")];
    await openssl("x509", "-req", "-in", file("server.csr"), "-out", certFile, "-days", "2", ...ca);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    caFile,
    certFile,
    keyFile,
    serverArgs: (port, { requireClientCertificate = false } = {}) => {
      const files = ["--tls-ca-cert-file", caFile, "--tls-cert-file", certFile, "--tls-key-file", keyFile];
      return [
        "--tls-port",
        String(port),
        ...files,
        "--tls-auth-clients",
        requireClientCertificate ? "yes" : "no",
      ];
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function openssl(...args: string[]): Promise<void> {
  await promisify(execFile)("openssl", args);
}
