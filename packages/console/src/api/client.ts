import { signal } from "@preact/signals";

import type { Problem } from "./types.ts";

const tokenKey = "holdfast-token";

/** A refusal of the service, or no reply (status 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, message: string, problem?: Problem) {
    super(message);
    this.status = status;
    this.problem = problem;
  }

  /** Whether this service does not have the path. An older service answers so. */
  get isMissing(): boolean {
    return this.status === 404 || this.status === 405 || this.status === 501;
  }
}

/** Whether the service asks for a token. */
export const needsToken = signal(false);

/** The token of this tab. A link cannot sign in a tab that is signed in as somebody else: the address counts only without a session. */
let token = tokenOfTab(takeTokenFromAddress());

export function setToken(value: string | undefined): void {
  token = value;
  try {
    if (value === undefined) sessionStorage.removeItem(tokenKey);
    else sessionStorage.setItem(tokenKey, value);
  } catch {
    // the token lasts until the page is left
  }
}

export function hasToken(): boolean {
  return token !== undefined;
}

export function get<T>(
  path: string,
  params: Readonly<Record<string, string | undefined>> = {},
  signal?: AbortSignal,
): Promise<T> {
  return request<T>(apiUrl(path, params), signal === undefined ? {} : { signal });
}

export function post<T>(path: string, body: object): Promise<T> {
  return request<T>(apiUrl(path), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Opens a stream of server-sent events. */
export function openStream(
  path: string,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  return reply(apiUrl(path, params), { signal, headers: { accept: "text/event-stream" } });
}

/** The address of the service, for commands: without the version of the interface. */
export function serviceUrl(): string {
  return apiUrl("").href.replace(/\/(v1\/)?$/, "");
}

async function request<T>(url: URL, init: RequestInit): Promise<T> {
  const response = await reply(url, init);
  return (await response.json()) as T;
}

async function reply(url: URL, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "The service does not reply");
  }
  if (response.ok) {
    needsToken.value = false;
    return response;
  }
  const problem = await problemOf(response);
  if (response.status === 401) needsToken.value = true;
  throw new ApiError(
    response.status,
    problem?.detail ?? `The service replied with status ${response.status}`,
    problem,
  );
}

async function problemOf(response: Response): Promise<Problem | undefined> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return undefined; // a proxy's page
  }
}

function apiUrl(path: string, params: Readonly<Record<string, string | undefined>> = {}): URL {
  const base = document.querySelector<HTMLMetaElement>('meta[name="holdfast-api"]')?.content ?? "../";
  const url = new URL(path, new URL(base, new URL("./", document.baseURI)));
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url;
}

/** Reads `#token=` and removes it from the address at once, so that it is neither bookmarked nor shared. */
function takeTokenFromAddress(): string | undefined {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null || given === "") return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return given;
}

function tokenOfTab(given: string | undefined): string | undefined {
  const present = readToken();
  if (present === undefined && given !== undefined) setTokenLater(given);
  return present ?? given;
}

function setTokenLater(value: string): void {
  queueMicrotask(() => setToken(value));
}

function readToken(): string | undefined {
  try {
    return sessionStorage.getItem(tokenKey) ?? undefined;
  } catch {
    return undefined;
  }
}
