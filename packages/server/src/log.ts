/** One line of the log. Nothing secret: no token, no lease id, no header. */
export interface LogEntry {
  readonly level: "debug" | "info" | "warn" | "error" | "audit";
  readonly event: string;
  readonly [name: string]: unknown;
}

export type Log = (entry: LogEntry) => void;

/** One JSON object a line. */
export function jsonLines(write: (line: string) => void, withDebug = false): Log {
  return (entry) => {
    if (entry.level !== "debug" || withDebug) {
      write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
    }
  };
}
