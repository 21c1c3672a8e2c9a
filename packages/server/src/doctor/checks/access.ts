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
        observed: "clients connect as the user default without a password",
        impact: "every client that reaches the port can acquire, break and forge every lock",
        fix: "create a separate user for locks (docs/security.md), and disable default or set its password",
      }),
    !isOpen &&
      user.name === "default" &&
      finding("info", "default-user", {
        observed: "locks use the user default",
        impact: "this user has every right, so a mistake in another program can flush the locks",
        fix: "create a separate user for locks (docs/security.md)",
      }),
    /(^| |,)~\*/.test(user.keys) &&
      finding("info", "all-keys", {
        observed: `the user ${user.name} may touch every key`,
        impact: "a client with this password can read and write all other data",
        fix: "allow only the keys of locks (docs/security.md)",
      }),
    /\+@all|\+flushall|\+@dangerous/.test(user.commands) &&
      finding("info", "may-flush", {
        observed: `the user ${user.name} may FLUSHALL`,
        impact: "one command deletes all locks, and each lock can get a second holder",
        fix: "allow only the commands that locks need (docs/security.md)",
      }),
  ];
};

const network: Check = (facts, { address }) =>
  !isLoopback(facts.host) &&
  !address.isEncrypted &&
  finding("risk", "no-tls", {
    observed: "the connection is not encrypted",
    impact: "a reader of the network traffic gets passwords and tokens, and can release or forge locks",
    fix: "use a URL with TLS (rediss:, redlocks:)",
  });

const protection: Check = (facts) =>
  settingOf(facts, "protected-mode") === "no" &&
  facts.user?.flags.includes("nopass") === true &&
  finding("critical", "unprotected", {
    observed: "protected-mode is no, and the user default needs no password",
    impact: "every client that reaches the port can acquire, break and forge every lock",
    fix: "set a password, or bind the server to private addresses",
  });

const debugCommand: Check = (facts) =>
  settingOf(facts, "enable-debug-command") !== undefined &&
  settingOf(facts, "enable-debug-command") !== "no" &&
  finding("info", "debug-command", {
    observed: `enable-debug-command is ${settingOf(facts, "enable-debug-command")}`,
    impact: "DEBUG can stop the server, and every renewal, for any time",
    fix: "set it to no, except in tests",
  });

/** Other programs in the database can delete or overwrite locks, for example by FLUSHDB. */
const shared: Check = (facts, { address }) => {
  const keys = Number(/keys=(\d+)/.exec(facts.info.get(`db${address.database}`) ?? "")?.[1] ?? 0);
  const withoutEnd =
    keys - Number(/expires=(\d+)/.exec(facts.info.get(`db${address.database}`) ?? "")?.[1] ?? 0);
  return (
    withoutEnd > 1_000 &&
    finding("info", "shared-database", {
      observed: `database ${address.database} has ${withoutEnd} keys that belong to no lock`,
      impact: "a program that flushes that database, or fills the memory, also deletes the locks",
      fix: "use a separate database, or better a separate server, for locks",
    })
  );
};

export const accessChecks: readonly Check[] = [credentials, network, protection, debugCommand, shared];
