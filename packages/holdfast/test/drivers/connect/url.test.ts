import { inspect } from "node:util";

import fc from "fast-check";
import { connect, type ConnectOptions } from "holdfast/connect";
import { describe, expect, test } from "vitest";

import { parseUrl } from "../../../src/drivers/connect/url.ts";
import { resolve } from "../../../src/drivers/connect/options.ts";

const secret = "hunter2-Geheim";

/** The settings that result from a URL and options, without opening a client. */
function understood(url: string | URL, options: ConnectOptions = {}): object {
  const { topology, isEncrypted, endpoints, primary, ...address } = parseUrl(url);
  const { access, driver } = resolve({ topology, isEncrypted, endpoints, primary, ...address }, options);
  const given = Object.entries(access).filter(([, value]) => value !== undefined);
  return {
    topology,
    endpoints,
    ...(primary !== undefined && { primary }),
    access: Object.fromEntries(given),
    driver,
  };
}

const usual = { database: 0, connectTimeoutMs: 5_000 };
const verified = {
  isVerified: true,
  caFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  servername: undefined,
};

describe("a URL", () => {
  test.each<[string | URL, object]>([
    [
      "redis://cache-1",
      { topology: "server", endpoints: [{ host: "cache-1", port: 6379 }], access: usual, driver: {} },
    ],
    [
      "redis://app:p%40ss%2Fw%3A%25@[::1]:7000/2?prefix=a%20b&commandTimeoutMs=500",
      {
        topology: "server",
        endpoints: [{ host: "::1", port: 7000 }],
        access: { ...usual, username: "app", password: "p@ss/w:%", database: 2 },
        driver: { prefix: "a b", commandTimeoutMs: 500 },
      },
    ],
    [
      new URL("redis://:a:b@h:1/?database=3&client=node-redis&connectionName=worker&connectTimeoutMs=100"),
      {
        topology: "server",
        endpoints: [{ host: "h", port: 1 }],
        access: {
          client: "node-redis",
          connectionName: "worker",
          connectTimeoutMs: 100,
          database: 3,
          password: "a:b",
        },
        driver: {},
      },
    ],
    [
      "REDISS://h?tlsCaFile=%2Fca.pem&tlsServername=n&tlsVerify=false&tlsCertFile=c&tlsKeyFile=k",
      {
        topology: "server",
        endpoints: [{ host: "h", port: 6379 }],
        access: {
          ...usual,
          tls: { caFile: "/ca.pem", certFile: "c", keyFile: "k", servername: "n", isVerified: false },
        },
        driver: {},
      },
    ],
    [
      "redis+unix://u:p@/run/my%20redis.sock?database=1",
      {
        topology: "server",
        endpoints: [{ path: "/run/my redis.sock" }],
        access: { ...usual, username: "u", password: "p", database: 1 },
        driver: {},
      },
    ],
    [
      "rediss+sentinel://u:p@s1,s2:7/the%20primary?database=4&sentinelUsername=su&sentinelPassword=s+p",
      {
        topology: "sentinel",
        endpoints: [
          { host: "s1", port: 26_379 },
          { host: "s2", port: 7 },
        ],
        primary: "the primary",
        access: {
          ...usual,
          username: "u",
          password: "p",
          database: 4,
          sentinelUsername: "su",
          sentinelPassword: "s+p",
          tls: verified,
        },
        driver: {},
      },
    ],
    [
      "redis+cluster://c1:1,c2/",
      {
        topology: "cluster",
        endpoints: [
          { host: "c1", port: 1 },
          { host: "c2", port: 6379 },
        ],
        access: usual,
        driver: {},
      },
    ],
    [
      "redlocks://:p@a,b,c/1?nodeTimeoutMs=20&driftFactor=0.02&maxTtlMs=1000&restartGuard=trust-durable&claimMs=100",
      {
        topology: "quorum",
        endpoints: ["a", "b", "c"].map((host) => ({ host, port: 6379 })),
        access: { ...usual, password: "p", database: 1, tls: verified },
        driver: {
          claimMs: 100,
          nodeTimeoutMs: 20,
          driftFactor: 0.02,
          maxTtlMs: 1000,
          restartGuard: "trust-durable",
        },
      },
    ],
  ])("%s is understood", (url, expected) => {
    expect(understood(url)).toEqual(expected);
  });

  test("may leave settings to the options, above all secrets", () => {
    const options = { username: "u", password: secret, claimMs: 500, database: 1 };
    expect(understood("redis://h?maxQueue=7", options)).toMatchObject({
      access: { username: "u", password: secret, database: 1 },
      driver: { maxQueue: 7, claimMs: 500 },
    });
  });

  test.each<[string, string, ConnectOptions?]>([
    ["", "Expected `url` to begin with one of memory:, redis:"],
    ["localhost:6379", "Expected `url` to begin with one of memory:, redis:"],
    ["ftp://h", "got ftp:"],
    ["redis:h", "Expected the URL to read redis://host/path?query"],
    ["redis://h#1", "without a fragment"],
    ["redis://", "Expected host 1 of the URL to be a name or an address"],
    ["redis+cluster://a,,c", "Expected host 2 of the URL"],
    ["redis://h:0", "Expected host 1 of the URL"],
    ["redis://h:65536", "Expected host 1 of the URL"],
    ["redis://::1", "Expected host 1 of the URL"],
    ["redis://a,b", "Expected a redis: URL to name one host, got 2"],
    ["redlock://a,b:6379,B", "to name different hosts"],
    ["redis://h/db", "Expected the path of the URL to be the number of a database"],
    ["redis://h/1?database=2", "`database` to be given in the path of the URL or in its query"],
    ["redis+cluster://h/1", "a cluster has database 0 only"],
    ["redis+cluster://h?database=1", "`database` in the query of the URL is unknown there"],
    ["redis+sentinel://h", "Sentinel's name of the primary"],
    ["redis+sentinel://h/a/b", "Sentinel's name of the primary"],
    ["redis+unix://h/run/s", "to name a socket and no host"],
    ["redis+unix://", "to name a socket and no host"],
    ["redis://user@h", "Expected a `password` with the `username`"],
    ["redis+sentinel://h/p?sentinelUsername=u", "Expected a `sentinelPassword` with the `sentinelUsername`"],
    ["redis://h?prefix", "Expected the query of the URL to read name=value"],
    ["redis://h?prefix=a&prefix=b", "Expected `prefix` to occur once in the URL"],
    ["redis://h?prefix=%E0", "Expected `prefix` to be encoded"],
    ["redis://h?ttl=5", "`ttl` in the query of the URL is unknown there; expected one of client, database"],
    ["redis://h?password=p", "An option in the query of the URL is unknown there"],
    ["redis://h?nodeTimeoutMs=5", "`nodeTimeoutMs` in the query of the URL is unknown there"],
    ["redis://h?tlsCaFile=f", "Expected `tlsCaFile` to be given in a URL with TLS (rediss:"],
    ["rediss://h?tlsVerify=no", 'Expected `tlsVerify` to be true or false, got "no" (string)'],
    ["rediss://h?tlsCertFile=f", "Expected `tlsCertFile` and `tlsKeyFile` to be given together"],
    ["redis://h?client=redis", 'Expected `client` to be "ioredis" or "node-redis", got "redis" (string)'],
    ["redis://h?commandTimeoutMs=2s", 'Expected `commandTimeoutMs` to be a number, got "2s" (string)'],
    [
      "redis://h?commandTimeoutMs=5",
      "Expected `commandTimeoutMs` to be an integer from 10 to 600000, got 5 (number)",
    ],
    [
      "redis://h?connectTimeoutMs=0.5",
      "Expected `connectTimeoutMs` to be an integer from 100 to 600000, got 0.5",
    ],
    ["redlock://h?driftFactor=2", "Expected `driftFactor` to be a fraction from 0 to 0.5, got 2 (number)"],
    ["redis://h?prefix=a", "Expected `prefix` to be given in the URL or in the options", { prefix: "b" }],
    ["redis://u:p@h", "Expected `password` to be given in the URL or in the options", { password: "p" }],
    ["redis://h", "Unknown option `nodeTimeoutMs`", { nodeTimeoutMs: 50 }],
    ["redis://h", "Expected `password` to be a string that is not empty", { password: "" }],
    ["memory:x", "Expected a memory: URL to end with its colon"],
    ["memory:", "Unknown option `path`", { path: "b" } as ConnectOptions],
  ])("%j is refused at once, and the error names the fault: %s", (url, message, options) => {
    expect(() => connect(url, options)).toThrow(message);
  });

  test("must be a string or a URL", () => {
    for (const url of [undefined, null, 5, { href: `redis://:${secret}@h` }]) {
      expect(() => connect(url as unknown as string)).toThrow(
        "Expected `url` to be a string or a URL, got a value",
      );
    }
  });
});

describe("no error shows the password", () => {
  const malformed = [
    `redis://user:${secret}@`,
    `redis://user:${secret}@h:port`,
    `redis://user:${secret}@h/${secret}`,
    `redis://user:${secret}@h?x=1`,
    `redis://user:${secret}@h?prefix=a&prefix=b`,
    `redis://user:${secret}@h?commandTimeoutMs=x`,
    `redis://user:${secret}@h#x`,
    `redis://user:${secret}@h@h`,
    `redis://user:${secret}`,
    `redis://${secret}@h`,
    `redis://${secret}:@h`,
    `redis://:@${secret}/x`,
    `redis:user:${secret}@h`,
    `redis:/user:${secret}@h`,
    `redi://user:${secret}@h`,
    `user:${secret}@h`,
    `${secret}:p@h`,
    `${secret}://h`.replace("-", "_"),
    secret,
    `memory:${secret}`,
    `redis+unix://:${secret}/path`,
    `redis+sentinel://:${secret}@h`,
    `redis+sentinel://h/p?sentinelPassword=${secret}&x=1`,
    `redis+sentinel://h/p?sentinelPassword=a%26b&${secret.replace("-", "")}=1`,
    `redis+sentinel://h/p?sentinelPassword=a&${secret.replace("-", "")}=%zz`,
    `redis+sentinel://h/p?sentinelPassword=a&${secret.replace("-", "")}=1&${secret.replace("-", "")}=1`,
    `redlock://:${secret}@a,:${secret}@b`,
    `redis://:%${secret}@h`,
    ...["/", "?", "#", "@", "%", ":", ",", " ", "&", "="].flatMap((mark) => [
      `redis://user:${secret}${mark}${secret}@h/x`,
      `redis://:${mark}${secret}@a,b`,
    ]),
  ];

  test.each(malformed)("of %s", (url) => {
    const shown = shownOf(() => connect(url));
    expect(shown).toMatch(/^TypeError: /);
    expect(shown).not.toContain(secret.slice(0, 7));
  });

  test("with any special characters, at any position", () => {
    const mark = fc.constantFrom(":", "/", "?", "#", "@", "%", ",", "[", "&", "=", " ", "");
    const shape = fc.tuple(
      mark,
      mark,
      mark,
      mark,
      fc.constantFrom("", "user", "%zz"),
      fc.constantFrom("h", "a,b", ""),
    );
    fc.assert(
      fc.property(
        shape,
        fc.constantFrom("redis", "rediss+sentinel", "redlock", "memory", "other"),
        (marks, scheme) => {
          const [before, inside, after, last, user, host] = marks;
          const url = `${scheme}://${user}:${before}Geheim${inside}Geheim${after}@${host}${last}`;
          expect(shownOf(() => parseUrl(url))).not.toContain("Geheim");
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test("that is given in the options", () => {
    const wrong = [
      { password: [secret] },
      { username: "u", password: { secret } },
      { password: secret, prefix: 5 },
      { sentinelPassword: secret },
      { password: secret, tlsCaFile: "f" },
    ];
    for (const options of wrong) {
      const shown = shownOf(() => connect("redis://h", options as unknown as ConnectOptions));
      expect(shown).toMatch(/^(Type|Range)Error: /);
      expect(shown).not.toContain(secret);
    }
  });
});

/** All text of the thrown error that a log could show. Empty without an error. */
function shownOf(act: () => unknown): string {
  try {
    act();
    return "";
  } catch (error) {
    return [String(error), inspect(error, { depth: Infinity, showHidden: true }), JSON.stringify(error)].join(
      "\n",
    );
  }
}
