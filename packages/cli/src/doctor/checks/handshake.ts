import { wordsOf } from "../../output.ts";
import type { Address } from "../url.ts";
import type { Facts } from "../facts.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";

/** The finding, if the server refused the user of the URL. */
export function refusedUser(node: string, failure: string, address: Address): Finding | undefined {
  return /\b(WRONGPASS|NOAUTH|ERR AUTH|invalid password)\b/.test(failure)
    ? wrongUser(node, `the server refuses the user ${userOf(address)}: ${failure}`)
    : undefined;
}

/** Whether the server takes the connection for the user and the database of the URL. */
export async function examineHandshake(
  server: Server,
  { user }: Facts,
  address: Address,
): Promise<Finding[]> {
  const { database } = address;
  const refusal =
    database === 0
      ? undefined
      : await server.client.select(database).then(
          () => undefined,
          (error: unknown) => wordsOf(error),
        );
  const found: Finding[] = [];
  if (user !== null && user.name !== userOf(address)) {
    found.push(wrongUser(server.name, `expected the user ${userOf(address)}, got ${user.name}`));
  }
  if (refusal !== undefined) {
    found.push({
      level: "danger",
      id: "wrong-database",
      node: server.name,
      observed: `expected database ${database}, the server refuses it: ${refusal}`,
      danger: "no lock can be had or renewed: locks in another database would exclude nobody here",
      advice:
        "+select for the user of the locks, or a URL with a database that the server has (CONFIG GET databases)",
      ...(refusal.includes("NOPERM") && { command: `ACL SETUSER ${userOf(address)} +select` }),
    });
  }
  return found;
}

function wrongUser(node: string, observed: string): Finding {
  return {
    level: "danger",
    id: "wrong-user",
    node,
    observed,
    danger: "no lock can be had or renewed; as another user it would have other rights than were given to it",
    advice:
      "set the user and password of the URL, and look whether the user exists and is on (ACL GETUSER <user>)",
  };
}

function userOf({ username }: Address): string {
  return username === undefined || username === "" ? "default" : username;
}
