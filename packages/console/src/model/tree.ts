import { isStale, type Row } from "./row.ts";

/** A line of the tree of prefixes: a group of keys, or one lock. */
export type TreeLine =
  | { readonly type: "lock"; readonly row: Row; readonly depth: number; readonly label: string }
  | {
      readonly type: "group";
      /** The prefix, with its separator. */
      readonly prefix: string;
      readonly label: string;
      readonly depth: number;
      readonly isOpen: boolean;
      readonly count: number;
      readonly waiting: number;
      readonly late: number;
    };

const separator = /[:/]/;

/**
 * Groups rows by the parts of their keys. The rows keep their order inside a group, and a group has the place of its first row. A prefix
 * of one key is no group, and a chain of groups with one member each is one group.
 */
export function treeLines(rows: readonly Row[], isOpen: (prefix: string) => boolean): TreeLine[] {
  return linesOf(rows, "", 0, isOpen);
}

function linesOf(
  rows: readonly Row[],
  above: string,
  depth: number,
  isOpen: (prefix: string) => boolean,
): TreeLine[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const prefix = nextPrefix(row.key, above) ?? row.key;
    const group = groups.get(prefix);
    if (group === undefined) groups.set(prefix, [row]);
    else group.push(row);
  }
  return [...groups].flatMap(([prefix, members]) => {
    const [first] = members;
    if (members.length === 1 && first !== undefined) {
      return [{ type: "lock" as const, row: first, depth, label: first.key.slice(above.length) }];
    }
    return groupLines(members, commonPrefix(members, prefix), above, depth, isOpen);
  });
}

function groupLines(
  members: readonly Row[],
  prefix: string,
  above: string,
  depth: number,
  isOpen: (prefix: string) => boolean,
): TreeLine[] {
  const open = isOpen(prefix);
  const group: TreeLine = {
    type: "group",
    prefix,
    label: prefix.slice(above.length),
    depth,
    isOpen: open,
    count: members.length,
    waiting: members.reduce((sum, { lock }) => sum + lock.waiterCount, 0),
    late: members.filter(isStale).length,
  };
  return open ? [group, ...linesOf(members, prefix, depth + 1, isOpen)] : [group];
}

/** The prefix of a key that is one part longer. Undefined: the key has no further separator. */
function nextPrefix(key: string, above: string): string | undefined {
  const at = key.slice(above.length).search(separator);
  return at < 0 ? undefined : key.slice(0, above.length + at + 1);
}

/** Extends a prefix while all members share the next part. */
function commonPrefix(members: readonly Row[], prefix: string): string {
  let common = prefix;
  for (;;) {
    const next = nextPrefix(members[0]?.key ?? "", common);
    if (next === undefined || !members.every(({ key }) => nextPrefix(key, common) === next)) return common;
    common = next;
  }
}
