import { createServer, type AddressInfo, type Socket } from "node:net";
import { createInterface } from "node:readline";

import { HistoryFile, SharedClock, type ResourceRecord } from "./judge/history.ts";

// What the locks protect, in a process of its own, so that it is never frozen with a client:
//
//   resource.js <history file> <epoch>
//
// Of each key it has the largest fencing token that it has seen, and two counters. One checks tokens, the other believes everybody.
// It ends with its parent.

/** One request, on a line of its own. */
export interface Visit {
  readonly visit: number;
  readonly key: string;
  readonly token: string;
  readonly from: string;
  /** A reader's, beside others: only writers' tokens are compared with its. */
  readonly shared?: boolean;
  /** Absent: it reads. */
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
// Ctrl-C reaches the whole process group; the parent decides what it means for us.
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
 * A token that is smaller than one that was here is refused; of a reader's, than one of a writer. The unchecked counter does not
 * look at it.
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

/** Remembers it, if it is. */
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
