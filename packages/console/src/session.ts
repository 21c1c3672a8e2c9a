import { computed, signal } from "@preact/signals";

import { ApiError, get, hasToken, needsToken, setToken } from "./api/client.ts";
import type { Me } from "./api/types.ts";

/** An older service has no `/v1/me`. Then the page draws everything, and the service decides. */
const everybody: Me = {
  principal: "",
  authentication: false,
  scopes: ["lock:read", "lock:force", "admin"].map((scope) => ({ scope, prefixes: [""] })),
  readOnly: false,
};

export const me = signal<Me | undefined>(undefined);
/** Why the service cannot be used. Empty: it can. */
export const startError = signal("");

export const canBreakSomething = computed(
  () => scopePrefixes(me.value, "lock:force").length > 0 && me.value?.readOnly !== true,
);
/** Whether the service has an optional part. An older service does not say so, and each page finds out. */
export function isOffered(part: string): boolean {
  return me.value?.offers?.includes(part) ?? true;
}

export const isAdmin = computed(() => scopePrefixes(me.value, "admin").length > 0);
export const readPrefixes = computed(() => shortest(scopePrefixes(me.value, "lock:read")));

export function canBreak(key: string): boolean {
  const prefixes = scopePrefixes(me.value, "lock:force");
  return me.value?.readOnly !== true && prefixes.some((prefix) => key.startsWith(prefix));
}

/** Asks the service about this client. */
export async function loadMe(): Promise<void> {
  try {
    me.value = await get<Me>("v1/me");
    startError.value = "";
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      me.value = everybody;
      needsToken.value = false;
    } else if (!(error instanceof ApiError && error.status === 401)) {
      startError.value = error instanceof Error ? error.message : String(error);
    }
  }
}

export async function login(token: string): Promise<void> {
  setToken(token);
  await loadMe();
  if (needsToken.value) setToken(undefined);
}

export function logout(): void {
  setToken(undefined);
  me.value = undefined;
  needsToken.value = true;
}

export const canLogout = computed(() => me.value !== undefined && hasToken());

function scopePrefixes(who: Me | undefined, scope: string): readonly string[] {
  return who?.scopes.flatMap((each) => (each.scope === scope ? each.prefixes : [])) ?? [];
}

/** The prefixes that no other prefix covers. */
function shortest(prefixes: readonly string[]): string[] {
  const unique = [...new Set(prefixes)];
  return unique.filter((one) => !unique.some((other) => other !== one && one.startsWith(other)));
}
