import type { Session } from "./contestants/contestant.ts";
import { startCycles } from "./loads/cycle.ts";
import { startHolding } from "./loads/hold.ts";
import { startRenewing } from "./loads/renew.ts";
import { startQueue } from "./loads/queue.ts";
import type { RunningLoad } from "./loads/running-load.ts";
import { useOnce } from "./loads/use.ts";
import { startWaiting } from "./loads/wait.ts";
import { measureMemory } from "./measure/memory.ts";
import type { Load, Reply, Request } from "./run/protocol.ts";
import { errorText } from "./report/error-text.ts";
import { openContestant } from "./run/contestant-list.ts";

// The process in which one contestant runs: `worker.js <contestant> <topology> <address>`. It ends when the channel to its parent closes.

const [name = "", topology = "", address = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());

let session: Session | undefined;
let load: RunningLoad | undefined;

async function open(): Promise<Reply> {
  const contestant = await openContestant(name, topology, address);
  session = contestant.session;
  return { outcome: "ready", settings: contestant.settings };
}

async function answer(request: Request): Promise<Reply> {
  if (request.call === "start") {
    load = await start(request.load);
    return { outcome: "done" };
  }
  if (request.call === "memory") return { outcome: "weighed", memory: await measureMemory() };
  if (!load) throw new Error("nothing has been started");
  switch (request.call) {
    case "begin":
      load.begin();
      return { outcome: "done" };
    case "end":
      return { outcome: "measured", measurement: load.end() };
    case "stop":
      await load.stop();
      return { outcome: "done" };
  }
}

async function start(load: Load): Promise<RunningLoad> {
  if (!session) throw new Error("the contestant is not open");
  switch (load.kind) {
    case "cycle":
      return startCycles(session, load);
    case "hold":
      return startHolding(session, load);
    case "keep":
      return startRenewing(session, load);
    case "queue":
      return startQueue(session, load);
    case "use":
      return useOnce(session, load);
    case "wait":
      return startWaiting(session, load);
  }
}

function send(reply: Promise<Reply>): void {
  void reply
    .catch((error: unknown): Reply => ({ outcome: "failed", reason: errorText(error) }))
    // A failed send needs no handling, because this process ends without its parent anyway.
    .then((message) => process.send?.(message, undefined, undefined, () => {}));
}

process.on("message", (request: Request) => send(answer(request)));
send(open());
