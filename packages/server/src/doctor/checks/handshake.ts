import { errorMessage } from "../errors.ts";
import type { DoctorTarget } from "../url.ts";
import type { ServerFacts } from "../facts.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";

/** The finding, if the server refused the user of the URL. */
export function rejectedUser(node: string, failure: string, address: DoctorTarget): Finding | undefined {
  return /\b(WRONGPASS|NOAUTH|ERR AUTH|invalid password)\b/.test(failure)
    ? wrongUser(node, `the server refuses the user ${userOf(address)}: ${failure}`)
    : undefined;
}

/** Checks that the connection has the user and the database of the URL. */
export async function checkHandshake(
  server: Server,
  { user }: ServerFacts,
  address: DoctorTarget,
): Promise<Finding[]> {
  const { database } = address;
  const refusal =
    database === 0
      ? undefined
      : await server.client.select(database).then(
          () => undefined,
          (error: unknown) => errorMessage(error),
        );
  const problem: Finding[] = [];
  if (user !== null && user.name !== userOf(address)) {
    problem.push(wrongUser(server.name, `expected the user ${userOf(address)}, got ${user.name}`));
  }
  if (refusal !== undefined) {
    problem.push({
      level: "critical",
      id: "wrong-database",
      node: server.name,
      observed: `expected database ${database}, the server refuses it: ${refusal}`,
      impact:
        "locks cannot be acquired or renewed, because locks in another database would not exclude other clients",
      fix: "+select for the user of the locks, kept by ACL SAVE or CONFIG REWRITE, or a URL with a database that the server has (CONFIG GET databases)",
      ...(refusal.includes("NOPERM") && { command: `ACL SETUSER ${userOf(address)} +select` }),
    });
  }
  return problem;
}

function wrongUser(node: string, observed: string): Finding {
  return {
    level: "critical",
    id: "wrong-user",
    node,
    observed,
    impact: "locks cannot be acquired or renewed, because another user has other rights",
    fix: "correct the user and password in the URL, and check that the user exists and is on (ACL GETUSER <user>)",
  };
}

function userOf({ username }: DoctorTarget): string {
  return username === undefined || username === "" ? "default" : username;
}
