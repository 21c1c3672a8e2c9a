import type { Database } from "./database.ts";
import type { SimulatedRequest } from "./faults.ts";

/** The state of one server, for its routes. */
export interface RouteContext {
  readonly database: Database;
  /** 2 or 3. */
  readonly generation: number;
  readonly version: string;
  readonly mode: string;
  /** Whether the server is a follower of the embedded database. */
  readonly isFollower: boolean;
  readonly users: Readonly<Record<string, string>> | undefined;
  readonly tokens: Set<string>;
}

export interface RouteRequest extends SimulatedRequest {
  readonly token: string | undefined;
  readonly casMd5: string | undefined;
  /** Whether the configuration existed when the request arrived. */
  readonly existed: boolean;
}

export interface RouteReply {
  readonly status: number;
  /** JSON, or undefined for an empty body. */
  readonly body: unknown;
}

interface Route {
  readonly required: readonly string[];
  readonly optional?: readonly string[];
  readonly isOpen?: boolean;
  readonly run: (
    parameters: Readonly<Record<string, string>>,
    context: RouteContext,
    request: RouteRequest,
  ) => RouteReply;
}

// Written from the documentation of Nacos (nacos.io: "Open API" of 2.x, "Admin API" of 3.x) and, for the compare-and-set and for errors,
// from its source. Other than Nacos it refuses unknown parameters, so that a misspelt name fails here.

/** Executes a request. */
export function handle(request: RouteRequest, context: RouteContext): RouteReply {
  const { method, path, parameters, token = "" } = request;
  const route = routesOf(context.generation)[`${method} ${path}`];
  if (route === undefined) {
    return { status: 404, body: { status: 404, error: "Not Found", path } };
  }
  const misnamed = misnamedIn(parameters, route);
  if (misnamed !== undefined) {
    return failure(400, 10_000, "parameter missing", `${misnamed} is missing or unknown`);
  }
  return route.isOpen || !context.users || context.tokens.has(token)
    ? (refusedPlace(parameters) ?? route.run(parameters, context, request))
    : failure(403, 10_001, "access denied", "token invalid!");
}

/** The name of a missing or unknown parameter. */
function misnamedIn(
  parameters: Readonly<Record<string, string>>,
  { required, optional = [] }: Route,
): string | undefined {
  const missing = required.find((name) => (parameters[name] ?? "") === "");
  const known = [...required, ...optional];
  return missing ?? Object.keys(parameters).find((name) => !known.includes(name));
}

function routesOf(generation: number): Readonly<Record<string, Route>> {
  return generation === 3 ? routes3 : routes2;
}

const login: Route = {
  required: ["username", "password"],
  isOpen: true,
  run: ({ username = "", password = "" }, { users, tokens }) => {
    if (users?.[username] !== password) {
      return failure(403, 10_001, "access denied", "unknown user!");
    }
    const accessToken = `token-${tokens.size}-${username}`;
    tokens.add(accessToken);
    return { status: 200, body: { accessToken, tokenTtl: 18_000, globalAdmin: false, username } };
  },
};

const routes3: Readonly<Record<string, Route>> = {
  "GET /v3/admin/core/state": {
    required: [],
    isOpen: true,
    run: (_, { version, mode }) => success({ version, startup_mode: mode }),
  },
  "POST /v3/auth/user/login": login,
  "GET /v3/admin/cs/config": {
    required: ["namespaceId", "groupName", "dataId"],
    run: ({ namespaceId = "", groupName = "", dataId = "" }, { database }) => {
      const row = database.find(namespaceId, groupName, dataId);
      return row === undefined
        ? failure(404, 20_004, "resource not found", "Config not exist, please publish Config first.")
        : success({ dataId, groupName, namespaceId, content: row.content, md5: row.md5 });
    },
  },
  "POST /v3/admin/cs/config": {
    required: ["namespaceId", "groupName", "dataId", "content"],
    optional: ["type"],
    run: ({ namespaceId = "", groupName = "", dataId = "", content = "" }, context, request) =>
      publish({ namespace: namespaceId, group: groupName, dataId, content }, context, request),
  },
  "GET /v3/admin/cs/config/list": {
    required: ["namespaceId", "groupName", "dataId", "search", "pageNo", "pageSize"],
    run: ({ namespaceId = "", groupName = "", ...query }, { database }) =>
      success(page(database.search(namespaceId, groupName, query["dataId"] ?? ""), query)),
  },
};

const routes2: Readonly<Record<string, Route>> = {
  "GET /v1/console/server/state": {
    required: [],
    isOpen: true,
    run: (_, { version, mode }) => ({ status: 200, body: { version, startup_mode: mode } }),
  },
  "POST /v1/auth/login": login,
  "GET /v1/cs/configs": {
    required: ["tenant", "group", "dataId"],
    optional: ["show", "search", "pageNo", "pageSize"],
    run: ({ tenant = "", group = "", dataId = "", ...query }, { database }) => {
      if (query["search"] === "blur") {
        return { status: 200, body: page(database.search(tenant, group, dataId), query) };
      }
      const row = query["show"] === "all" ? database.find(tenant, group, dataId) : undefined;
      return {
        status: 200,
        body: row && { id: "1", dataId, group, tenant, content: row.content, md5: row.md5 },
      };
    },
  },
  "POST /v2/cs/config": {
    required: ["namespaceId", "group", "dataId", "content"],
    optional: ["type"],
    run: ({ namespaceId = "", group = "", dataId = "", content = "" }, context, request) =>
      publish({ namespace: namespaceId, group, dataId, content }, context, request),
  },
};

function publish(
  place: { namespace: string; group: string; dataId: string; content: string },
  { database, isFollower }: RouteContext,
  { casMd5 = "", existed }: RouteRequest,
): RouteReply {
  if (casMd5 === "") {
    return failure(400, 10_000, "parameter missing", "the driver never publishes without casMd5");
  }
  if (database.publish({ ...place, casMd5 }, existed)) {
    return success(true);
  }
  return isFollower || !existed
    ? failure(500, 30_000, "server error", "java.lang.IllegalStateException: null")
    : failure(500, 20_005, "resource conflict", "Cas publish fail, server md5 may have changed.");
}

function page(rows: readonly object[], query: Readonly<Record<string, string>>): object {
  const [pageNumber, pageSize] = [Number(query["pageNo"]), Number(query["pageSize"])];
  const pageItems = rows.slice((pageNumber - 1) * pageSize, pageNumber * pageSize);
  const pagesAvailable = Math.ceil(rows.length / pageSize);
  return { totalCount: rows.length, pageNumber, pagesAvailable, pageItems };
}

const patterns: Readonly<Record<string, RegExp>> = {
  group: /^[\w.:-]{1,128}$/,
  groupName: /^[\w.:-]{1,128}$/,
  namespaceId: /^(?!public$)[\w-]{1,64}$/,
  tenant: /^(?!public$)[\w-]{1,64}$/,
  content: /^[ -~]{1,100000}$/,
};

/** Refuses what Nacos refuses: characters and lengths of names, and blank or long contents. */
function refusedPlace(parameters: Readonly<Record<string, string>>): RouteReply | undefined {
  const dataId = parameters["search"] === undefined ? /^[\w.:-]{1,255}$/ : /^[\w.:*-]{1,256}$/;
  const wrong = Object.entries({ ...patterns, dataId }).find(
    ([name, pattern]) => parameters[name] !== undefined && !pattern.test(parameters[name]),
  );
  return wrong && failure(400, 20_002, "parameter validate error", `illegal ${wrong[0]}`);
}

function success(data: unknown): RouteReply {
  return { status: 200, body: { code: 0, message: "success", data } };
}

function failure(status: number, code: number, message: string, data: string): RouteReply {
  return { status, body: { code, message, data } };
}
