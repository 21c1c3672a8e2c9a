import { createServer, type AddressInfo, type Socket } from "node:net";
import { createInterface } from "node:readline";

import { HistoryFile, SharedClock, type ResourceRecord } from "./judge/history.ts";

// The resource that the locks protect: `resource.js <history file> <epoch>`. It is a separate process, so that it is never frozen with a
// client. For each key it has the largest fencing token that it received, and two counters, of which one checks tokens. It ends with its
// parent.

/** A request, on one line. */
export interface Visit {
  readonly visit: number;
  readonly key: string;
  readonly token: string;
  readonly from: string;
  /** A visit of a reader: its token is compared only with the tokens of writers. */
  readonly shared?: boolean;
  /** The values to write. Absent: the visit only reads. */
  readonly write?: { readonly checked: number; readonly unchecked: number };
}

export interface VisitAnswer {
  readonly visit: number;
  readonly accepted: boolean;
  readonly checked: number;
  readonly unchecked: number;
}

interface ProtectedCounter {
  newest: bigint;
  newestOfWriters: bigint;
  checked: number;
  unchecked: number;
}

const [path = "", epoch = "0"] = process.argv.slice(2);
const history = new HistoryFile<ResourceRecord>(path);
const clock = new SharedClock(BigInt(epoch));
const resources = new Map<string, ProtectedCounter>();

const server = createServer((socket) => {
  serve(socket);
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit());
// Ctrl-C reaches the whole process group, and the parent decides how to stop this process.
process.on("SIGINT", () => undefined);

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on("error", () => undefined); // a client was killed
  const lines = createInterface({ input: socket });
  lines.on("error", () => undefined);
  lines.on("line", (line) => {
    const answer = handleVisit(JSON.parse(line) as Visit);
    socket.write(`${JSON.stringify(answer)}\n`);
  });
}

/**
 * Refuses a token that is smaller than an earlier token. A reader's token is compared only with the tokens of writers. The counter that does
 * not check tokens accepts every write.
 */
function handleVisit({ visit, key, token, from, shared = false, write }: Visit): VisitAnswer {
  const resource = resources.get(key) ?? { newest: 0n, newestOfWriters: 0n, checked: 0, unchecked: 0 };
  resources.set(key, resource);
  const accepted = isAccepted(resource, BigInt(token), shared);
  const { checked, unchecked } = resource;
  if (write) {
    resource.unchecked = write.unchecked;
    resource.checked = accepted ? write.checked : checked;
    history.write({
      e: "write",
      at: clock.now(),
      key,
      token,
      from,
      accepted,
      checked: [checked, write.checked],
      unchecked: [unchecked, write.unchecked],
    });
  } else {
    const how = shared ? { shared } : {};
    history.write({ e: "read", at: clock.now(), key, token, from, accepted, ...how });
  }
  return { visit, accepted, checked: resource.checked, unchecked: resource.unchecked };
}

/** Stores the token if the visit is accepted. */
function isAccepted(resource: ProtectedCounter, token: bigint, shared: boolean): boolean {
  if (token < (shared ? resource.newestOfWriters : resource.newest)) {
    return false;
  }
  resource.newest = token > resource.newest ? token : resource.newest;
  if (!shared) {
    resource.newestOfWriters = token;
  }
  return true;
}
