/** A request to a server, without its origin and context path. */
export interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** In the query of a GET, and in the body of a POST. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The MD5 that the present content must have. */
  readonly casMd5?: string;
}

export interface Place {
  readonly namespace: string;
  readonly group: string;
  readonly dataId: string;
}

/** The paths of one generation of the API. All reads are those that Nacos serves from its database, not from its cache of files. */
export interface Api {
  login(user: string, password: string): Call;
  read(place: Place): Call;
  publish(place: Place, content: string, casMd5: string): Call;
  /** One page of the configurations whose `dataId` fits a pattern with `*`. @param page from 1 */
  list(place: Place, page: number, size: number): Call;
}

/** Nacos 3: the admin API. */
export const api3: Api = {
  login: (username, password) => post("/v3/auth/user/login", { username, password }),
  read: (place) => get("/v3/admin/cs/config", named(place)),
  publish: (place, content, casMd5) =>
    post("/v3/admin/cs/config", { ...named(place), content, type: "json" }, casMd5),
  list: (place, page, size) =>
    get("/v3/admin/cs/config/list", { ...named(place), search: "blur", ...paged(page, size) }),
};

/** Nacos 2. The first generation of paths has the only reads from the database. */
export const api2: Api = {
  login: (username, password) => post("/v1/auth/login", { username, password }),
  read: ({ namespace: tenant, group, dataId }) =>
    get("/v1/cs/configs", { tenant, group, dataId, show: "all" }),
  publish: ({ namespace: namespaceId, group, dataId }, content, casMd5) =>
    post("/v2/cs/config", { namespaceId, group, dataId, content, type: "json" }, casMd5),
  list: ({ namespace: tenant, group, dataId }, page, size) =>
    get("/v1/cs/configs", { tenant, group, dataId, search: "blur", ...paged(page, size) }),
};

/** The state of a server, which needs no user. Nacos 2 does not have the first path. */
export const stateCalls: Readonly<Record<"nacos2" | "nacos3", Call>> = {
  nacos3: get("/v3/admin/core/state", {}),
  nacos2: get("/v1/console/server/state", {}),
};

function get(path: string, parameters: Readonly<Record<string, string>>): Call {
  return { method: "GET", path, parameters };
}

function post(path: string, parameters: Readonly<Record<string, string>>, casMd5?: string): Call {
  return { method: "POST", path, parameters, ...(casMd5 === undefined ? {} : { casMd5 }) };
}

function named({ namespace: namespaceId, group: groupName, dataId }: Place): Record<string, string> {
  return { namespaceId, groupName, dataId };
}

function paged(page: number, size: number): Record<string, string> {
  return { pageNo: String(page), pageSize: String(size) };
}
