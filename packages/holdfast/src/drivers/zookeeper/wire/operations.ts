import { multiError, protocolError } from "./errors.ts";
import { JuteReader, JuteWriter } from "./jute.ts";

/** One operation: its code, its arguments, and how its reply is read. */
export interface Operation<T> {
  readonly code: number;
  readonly body: Buffer;
  readonly read: (reply: JuteReader) => T;
}

/** The properties of a node that the driver uses. */
export interface Stat {
  /** The transaction that created the node. Transactions are numbered for the whole ensemble. */
  readonly createdBy: bigint;
  /** The creation, by the wall clock of the leader, milliseconds since 1970. */
  readonly createdAt: number;
  /** The last change, by the wall clock of the leader, milliseconds since 1970. */
  readonly changedAt: number;
  /** How often the data were changed. */
  readonly version: number;
}

export interface NodeData {
  readonly data: string;
  readonly stat: Stat;
}

export type NodeKind =
  "persistent" | "ephemeral" | "persistent-sequential" | "ephemeral-sequential" | "container";

/** The users of a node: all, or only its creator. */
export type Access = "world" | "creator";

const anyVersion = -1;

const flags = {
  persistent: 0,
  ephemeral: 1,
  "persistent-sequential": 2,
  "ephemeral-sequential": 3,
  container: 4,
};
const createContainerCode = 19;
const allPermissions = 31;
const operationCodes = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  check: 13,
  multi: 14,
  create2: 15,
  close: -11,
};

/** In a transaction, the server sometimes omits the properties of a created node. */
export function create(
  path: string,
  data: string,
  kind: NodeKind,
  access: Access,
): Operation<{ path: string; stat: Stat | undefined }> {
  const [scheme, id] = access === "world" ? ["world", "anyone"] : ["auth", ""];
  const acl = new JuteWriter().int(1).int(allPermissions).text(scheme).text(id);
  return {
    code: kind === "container" ? createContainerCode : operationCodes.create2,
    body: new JuteWriter().text(path).text(data).append(acl.body).int(flags[kind]).body,
    read: (reply) => ({ path: reply.text(), stat: readStat(reply) }),
  };
}

export function remove(path: string, version: number = anyVersion): Operation<void> {
  return { code: operationCodes.delete, body: withVersion(path, version), read: () => undefined };
}

/** Fails if the node does not exist. Needs no permission. */
export function exists(path: string): Operation<Stat> {
  return {
    code: operationCodes.exists,
    body: new JuteWriter().text(path).bool(false).body,
    read: readStat,
  };
}

/** @param watch whether the connection reports the next change of the node */
export function getData(path: string, watch = false): Operation<NodeData> {
  return {
    code: operationCodes.getData,
    body: new JuteWriter().text(path).bool(watch).body,
    read: (reply) => ({ data: reply.text(), stat: readStat(reply) }),
  };
}

export function setData(path: string, data: string, version: number = anyVersion): Operation<Stat> {
  return {
    code: operationCodes.setData,
    body: new JuteWriter().text(path).text(data).int(version).body,
    read: readStat,
  };
}

export function getChildren(path: string): Operation<string[]> {
  return {
    code: operationCodes.getChildren,
    body: new JuteWriter().text(path).bool(false).body,
    read: (reply) => reply.texts(),
  };
}

/** Later reads on the same connection see everything that the leader has committed before. */
export function sync(): Operation<void> {
  return { code: operationCodes.sync, body: new JuteWriter().text("/").body, read: () => undefined };
}

/** Fails if the node does not exist. Only for {@link multi}. */
export function check(path: string): Operation<void> {
  return { code: operationCodes.check, body: withVersion(path, anyVersion), read: () => undefined };
}

export function closeSession(): Operation<void> {
  return { code: operationCodes.close, body: Buffer.alloc(0), read: () => undefined };
}

type Results<Operations extends readonly Operation<unknown>[]> = {
  -readonly [Index in keyof Operations]: Operations[Index] extends Operation<infer T> ? T : never;
};

/** Executes all operations in one transaction, or none. */
export function multi<const Operations extends readonly Operation<unknown>[]>(
  ...operations: Operations
): Operation<Results<Operations>> {
  const body = new JuteWriter();
  for (const { code, body: one } of operations) {
    body.int(code).bool(false).int(-1).append(one);
  }
  body.int(-1).bool(true).int(-1);
  return {
    code: operationCodes.multi,
    body: body.body,
    read: (reply) => readMulti(operations, reply) as Results<Operations>,
  };
}

function readMulti(operations: readonly Operation<unknown>[], reply: JuteReader): unknown[] {
  const results: unknown[] = [];
  const failures: number[] = [];
  for (;;) {
    const code = reply.int();
    const isEnd = reply.bool();
    reply.int();
    if (isEnd) {
      break;
    }
    const operation = operations[results.length];
    if (code === -1) {
      failures.push(reply.int());
    } else if (operation === undefined) {
      throw protocolError("a transaction has more results than operations");
    }
    if (code === operationCodes.create) {
      results.push({ path: reply.text(), stat: undefined });
    } else {
      results.push(code === -1 ? undefined : operation?.read(reply));
    }
  }
  if (failures.length > 0) {
    throw multiError(failures);
  } else if (results.length !== operations.length) {
    throw protocolError(`a transaction of ${operations.length} operations has ${results.length} results`);
  }
  return results;
}

function withVersion(path: string, version: number): Buffer {
  return new JuteWriter().text(path).int(version).body;
}

/** The fields in their order: czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, data length, children, pzxid. */
function readStat(reply: JuteReader): Stat {
  const createdBy = reply.long();
  reply.long();
  const createdAt = Number(reply.long());
  const changedAt = Number(reply.long());
  const version = reply.int();
  reply.int();
  reply.int();
  reply.long();
  reply.int();
  reply.int();
  reply.long();
  return { createdBy, createdAt, changedAt, version };
}
