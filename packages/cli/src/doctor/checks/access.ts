import { settingOf } from "../facts.ts";
import { isLoopback } from "../servers.ts";
import { finding, type Check } from "./check.ts";

const credentials: Check = (facts) => {
  const { user, host } = facts;
  const isOpen = user?.name === "default" && user.flags.includes("nopass");
  if (user === null) {
    return undefined;
  }
  return [
    isOpen &&
      finding(isLoopback(host) ? "risk" : "critical", "no-password", {
        observed: "anybody may connect as the user default, without a password",
        impact: "everybody who reaches the port can take, break and forge every lock",
        fix: "a user of its own for locks (docs/security.md), and default off or with a password",
      }),
    !isOpen &&
      user.name === "default" &&
      finding("info", "default-user", {
        observed: "locks use the user default",
        impact: "it may do everything: a mistake elsewhere flushes the locks",
        fix: "a user of its own for locks (docs/security.md)",
      }),
    /(^| |,)~\*/.test(user.keys) &&
      finding("info", "all-keys", {
        observed: `the user ${user.name} may touch every key`,
        impact: "who has its password can do more than take locks",
        fix: "only the keys of locks (docs/security.md)",
      }),
    /\+@all|\+flushall|\+@dangerous/.test(user.commands) &&
      finding("info", "may-flush", {
        observed: `the user ${user.name} may FLUSHALL`,
        impact: "one command forgets all locks: a second holder of each",
        fix: "only the commands that locks need (docs/security.md)",
      }),
  ];
};

const network: Check = (facts, { address }) =>
  !isLoopback(facts.host) &&
  !address.isEncrypted &&
  finding("risk", "no-tls", {
    observed: "the connection is not encrypted",
    impact: "who can read the way sees passwords and tokens, and can release or forge locks with them",
    fix: "a URL with TLS (rediss:, redlocks:)",
  });

const protection: Check = (facts) =>
  settingOf(facts, "protected-mode") === "no" &&
  facts.user?.flags.includes("nopass") === true &&
  finding("critical", "unprotected", {
    observed: "protected-mode is no, and the user default needs no password",
    impact: "everybody who reaches the port can take, break and forge every lock",
    fix: "a password, or bind it to addresses that only you reach",
  });

const debugCommand: Check = (facts) =>
  settingOf(facts, "enable-debug-command") !== undefined &&
  settingOf(facts, "enable-debug-command") !== "no" &&
  finding("info", "debug-command", {
    observed: `enable-debug-command is ${settingOf(facts, "enable-debug-command")}`,
    impact: "DEBUG can stop the server for any time, and with it every renewal",
    fix: "no, but for tests",
  });

/** Other programs in the database can delete or overwrite locks, by FLUSHDB if not otherwise. */
const shared: Check = (facts, { address }) => {
  const keys = Number(/keys=(\d+)/.exec(facts.info.get(`db${address.database}`) ?? "")?.[1] ?? 0);
  const withoutEnd =
    keys - Number(/expires=(\d+)/.exec(facts.info.get(`db${address.database}`) ?? "")?.[1] ?? 0);
  return (
    withoutEnd > 1_000 &&
    finding("info", "shared-database", {
      observed: `database ${address.database} has ${withoutEnd} keys that no lock has made`,
      impact: "who empties that database, or fills its memory, ends the locks as well",
      fix: "a database, or better a server, of their own for locks",
    })
  );
};

export const accessChecks: readonly Check[] = [credentials, network, protection, debugCommand, shared];
