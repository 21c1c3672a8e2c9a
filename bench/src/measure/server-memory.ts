import type { Redis } from "ioredis";

/** What the server keeps, in bytes: without the buffers of its connections, which come and go. */
export async function usedBytes(admin: Redis): Promise<number> {
  const info = await admin.info("memory");
  return fieldOf(info, "used_memory") - fieldOf(info, "mem_clients_normal");
}

function fieldOf(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1]);
}
