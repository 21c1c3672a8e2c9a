import type { Redis } from "ioredis";

/** The memory of the server in bytes, without the buffers of its connections, because their size varies. */
export async function usedBytes(admin: Redis): Promise<number> {
  const info = await admin.info("memory");
  return fieldOf(info, "used_memory") - fieldOf(info, "mem_clients_normal");
}

function fieldOf(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1]);
}
