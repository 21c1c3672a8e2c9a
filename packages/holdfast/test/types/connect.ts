// The parameters of `connect()`, and its result as a driver. Compiled with `skipLibCheck: false`.
import { createLocks, type Driver, type Locks } from "holdfast";
import { connect, type ConnectOptions } from "holdfast/connect";

export async function locksBy(url: string | URL, options: ConnectOptions): Promise<Locks> {
  const driver: Driver = await connect(url, options);
  return createLocks(driver);
}

export const accepted: readonly Promise<Driver>[] = [
  connect("memory:"),
  connect(new URL("rediss://host"), {
    password: "p",
    tlsVerify: undefined,
    client: "node-redis",
    claimMs: 500,
  }),
  connect("redlock://a,b,c", { nodeTimeoutMs: 20 }),
];

export function refused(): unknown[] {
  return [
    // @ts-expect-error `connect` accepts no client
    connect({ host: "127.0.0.1" }),
    // @ts-expect-error the libraries are called ioredis and node-redis
    connect("redis://h", { client: "redis" }),
    // @ts-expect-error the option is called database
    connect("redis://h", { db: 2 }),
    // @ts-expect-error it has to be awaited first
    createLocks(connect("memory:")),
  ];
}
