import createClient, { type Client } from "openapi-fetch";

import type { paths } from "./service.generated.ts";

const url = process.env["HOLDFAST_URL"] ?? "http://127.0.0.1:7420";
const token = process.env["HOLDFAST_TOKEN"];

/** A client whose paths, bodies and replies have the types of the OpenAPI document. */
const client: Client<paths> = createClient<paths>({
  baseUrl: url,
  headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
});

const { data: lease, error } = await client.POST("/v1/leases", {
  body: { key: "order:555", ttlMs: 30_000, waitMs: 5_000, reason: "an example" },
});
if (lease === undefined) {
  console.error(`${error.code}: ${error.detail}`);
  process.exitCode = 1;
} else if (typeof lease !== "string") {
  const { leaseId, fencingToken } = lease;
  console.log(`acquired with the fencing token ${fencingToken}`);
  const { data: state } = await client.GET("/v1/lock", { params: { query: { key: "order:555" } } });
  console.log(`held by ${state?.holders[0]?.owner}: ${state?.holders[0]?.reason}`);
  await client.POST("/v1/leases/{leaseId}/renew", { params: { path: { leaseId } }, body: { ttlMs: 60_000 } });
  const { data: ended } = await client.DELETE("/v1/leases/{leaseId}", { params: { path: { leaseId } } });
  console.log(`released: ${ended?.released}`);
}
