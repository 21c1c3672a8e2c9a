import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** A file of the console, as the manifest of its build describes it. */
interface FileEntry {
  readonly type: string;
  /** Whether the name has a hash of the content. */
  readonly immutable: boolean;
  readonly etag: string;
}

const page = "index.html";

/** The static files of the console, in plain form and compressed by brotli. Each file is read once, at its first request. */
export class ConsoleFiles {
  readonly #folder: URL;
  readonly #entries: Readonly<Record<string, FileEntry>>;
  readonly #contents = new Map<string, Promise<Buffer>>();

  /** @throws {Error} the folder has no manifest, because the console was not built */
  constructor(folder: URL) {
    const { files } = JSON.parse(readFileSync(new URL("manifest.json", folder), "utf8")) as {
      files: Record<string, FileEntry>;
    };
    this.#folder = folder;
    this.#entries = files;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#entries, name);
  }

  /** The response to a request for a file of the manifest. */
  async respond(request: Request, name: string = page, status = 200): Promise<Response> {
    const entry = this.#entries[name];
    if (!entry) {
      throw new RangeError(`The console has no file ${name}`);
    }
    const { type, immutable, etag } = entry;
    const headers = new Headers({
      "cache-control": immutable ? "public, max-age=31536000, immutable" : "no-cache",
      etag: `"${etag}"`,
      vary: "accept-encoding",
    });
    if (status === 200 && namesEtag(request.headers.get("if-none-match"), etag)) {
      return new Response(null, { status: 304, headers });
    }
    headers.set("content-type", type);
    const isCompressed = acceptsBrotli(request.headers.get("accept-encoding"));
    if (isCompressed) {
      headers.set("content-encoding", "br");
    }
    const content = await this.#read(isCompressed ? `${name}.br` : name);
    headers.set("content-length", String(content.length));
    const body = request.method === "HEAD" ? null : new Uint8Array(content);
    return new Response(body, { status, headers });
  }

  #read(name: string): Promise<Buffer> {
    const known = this.#contents.get(name);
    if (known) {
      return known;
    }
    const content = readFile(new URL(name, this.#folder));
    this.#contents.set(name, content);
    content.catch(() => this.#contents.delete(name));
    return content;
  }
}

function namesEtag(header: string | null, etag: string): boolean {
  return header?.split(",").some((one) => one.trim().replace(/^W\//, "") === `"${etag}"`) === true;
}

function acceptsBrotli(header: string | null): boolean {
  return header?.split(",").some((one) => /^\s*br\s*(;\s*q=(?!0(\.0*)?\s*$)|$)/i.test(one)) === true;
}
