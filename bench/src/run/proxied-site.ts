import { startProxy } from "@holdfast/test-kit";
import { Redis } from "ioredis";
import { median } from "../measure/statistics.ts";
import type { Server, Site } from "../suites/suite.ts";

const pings = 20;

/** A site whose ports are those of delaying proxies. The admin connections go directly to the servers. */
export interface ProxiedSite extends AsyncDisposable {
  readonly site: Site;
  /** The median of several PINGs of an otherwise idle ioredis client. */
  readonly roundTripMs: number;
}

/** Delays each direction by `oneWayMs`. */
export async function withProxies(site: Site, oneWayMs: number): Promise<ProxiedSite> {
  const proxies = await Promise.all(site.servers.map(({ port }) => startProxy(port)));
  for (const proxy of proxies) proxy.delay(oneWayMs);
  const proxied = (server: Server, index: number): Server => ({
    ...server,
    port: proxies[index]?.port ?? Number.NaN,
  });
  const [first, ...others] = site.servers;
  const servers: Site["servers"] = [
    proxied(first, 0),
    ...others.map((one, index) => proxied(one, index + 1)),
  ];
  return {
    site: { ...site, servers },
    roundTripMs: await roundTripOf(servers[0].port),
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
}

async function roundTripOf(port: number): Promise<number> {
  const client = new Redis(port, "127.0.0.1");
  const trips: number[] = [];
  for (let ping = 0; ping < pings; ping += 1) {
    const sentAt = performance.now();
    await client.ping();
    trips.push(performance.now() - sentAt);
  }
  client.disconnect();
  // The first PING includes the opening of the connection.
  return median(trips.slice(1));
}
