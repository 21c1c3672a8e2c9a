import { globMatcher } from "../glob.ts";
import { ok, ServerError, type Reply } from "../reply.ts";
import { unknownOption, type Commands, type Server } from "./command.ts";

const channelRefused =
  "ERR The user executing the script can't publish to the channel mentioned in the command";

/** Commands that concern the server and no key. */
export const servers: Commands = {
  time: { arity: 1, run: time },
  info: { arity: -1, run: info },
  config: { arity: -2, flags: ["outside"], run: config },
  publish: { arity: 3, run: (server, channel = "", text = "") => publish(server, "p", channel, text) },
  spublish: {
    arity: 3,
    flags: ["sharded"],
    run: (server, channel = "", text = "") => publish(server, "s", channel, text),
  },
  flushall: { arity: -1, flags: ["write"], run: flushall },
};

function time(server: Server): Reply {
  const micros = server.micros();
  return [String(Math.floor(micros / 1_000_000)), String(micros % 1_000_000)];
}

/** Only the sections and lines that our scripts read. */
function info(server: Server, section = ""): string {
  const lines = server.info(section.toLowerCase()) ?? unknownOption("INFO", section);
  return Object.entries(lines)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join("");
}

function config(server: Server, subcommand = "", ...patterns: string[]): Reply {
  const parameters = server.config();
  if (subcommand.toLowerCase() !== "get") {
    unknownOption("CONFIG", subcommand);
  } else if (!parameters) {
    throw new ServerError("NOPERM this user has no permissions to run the 'config|get' command");
  }
  return patterns.flatMap((pattern) => {
    const matches = globMatcher(pattern.toLowerCase());
    const isName = !/[*?[]/.test(pattern); // a name is returned as the client wrote it
    return Object.entries(parameters).flatMap(([name, value]) =>
      matches(name) ? [isName ? pattern : name, value] : [],
    );
  });
}

function publish({ pubSub }: Server, kind: "s" | "p", channel: string, text: string): number {
  if (!pubSub.mayPublish) {
    throw new ServerError(channelRefused);
  }
  return pubSub.publish(kind, channel, text);
}

function flushall(server: Server): Reply {
  server.flush();
  return ok;
}
