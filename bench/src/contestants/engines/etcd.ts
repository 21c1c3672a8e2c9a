import type { Contestant } from "../contestant.ts";

/** The TTL of a session of etcd's own client, and the rhythm of its renewals. */
const sessionTtlS = 60;
const keepAliveMs = 20_000;

/** A lease per session, as in etcd's own client. Tasks of a process share no session, because a session never waits for itself. */
export const lockRpc: Contestant<string> = {
  settings: `Lock and Unlock of the JSON gateway by fetch; reused leases with a TTL of ${sessionTtlS} s`,
  open: async (url) => {
    const leases: string[] = [];
    const unused: string[] = [];
    setInterval(() => {
      for (const ID of leases) call(url, "lease/keepalive", { ID }).catch(() => {});
    }, keepAliveMs);

    async function newLease(): Promise<string> {
      const lease = await grantLease(url, sessionTtlS);
      leases.push(lease);
      return lease;
    }

    return {
      acquire: async (key) => {
        const lease = unused.pop() ?? (await newLease());
        const lock = await call(url, "lock/lock", { name: base64(key), lease });
        return async () => {
          await call(url, "lock/unlock", { key: lock["key"] });
          unused.push(lease);
        };
      },
      hold: null,
    };
  },
};

/** A lease for each grant, so that a grant ends with its own TTL. The revocation of the lease releases the lock. */
export const lockRpcOwnLease: Contestant<string> = {
  settings: "Lock of the JSON gateway by fetch, with a new lease for each grant, which is revoked",
  open: async (url) => ({
    acquire: async (key, ttlMs) => {
      const lease = await grantLease(url, Math.ceil(ttlMs / 1000));
      await call(url, "lock/lock", { name: base64(key), lease });
      return () => call(url, "lease/revoke", { ID: lease });
    },
    hold: null,
  }),
};

async function grantLease(url: string, ttlS: number): Promise<string> {
  return (await call(url, "lease/grant", { TTL: ttlS }))["ID"] as string;
}

async function call(url: string, path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
  const reply = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${path}: HTTP status ${response.status}`);
  return reply;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
