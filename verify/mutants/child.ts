import { spawn } from "node:child_process";

export interface Ended {
  /** Undefined: it was stopped when its time was over. */
  readonly code: number | undefined;
  readonly output: string;
  readonly seconds: number;
}

export interface ChildOptions {
  readonly folder: string;
  readonly timeoutMs: number;
  /** Where it may put its temporary files. */
  readonly temporary: string;
}

/** The groups of processes that run now, by the id of their first. */
const running = new Set<number>();

/** Runs a program of Node to its end. When its time is over it is killed with all that it started. */
export function runNode(args: readonly string[], options: ChildOptions): Promise<Ended> {
  const { folder, timeoutMs, temporary } = options;
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      detached: true, // a group of its own
      env: { ...childEnvironment(), TMPDIR: temporary },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { pid } = child;
    let output = "";
    let isLate = false;
    if (pid !== undefined) {
      running.add(pid);
    }
    const timer = setTimeout(() => {
      isLate = true;
      killGroup(pid);
    }, timeoutMs);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    const done = (): void => {
      clearTimeout(timer);
      killGroup(pid); // what it left running
    };
    child.once("error", (error) => {
      done();
      reject(error);
    });
    child.once("close", (code) => {
      done();
      const seconds = (performance.now() - begun) / 1_000;
      resolve({ code: isLate ? undefined : (code ?? -1), output, seconds });
    });
  });
}

/** For an end of this process before its children's. */
export function killAll(): void {
  for (const pid of running) {
    killGroup(pid);
  }
}

function killGroup(pid: number | undefined): void {
  if (pid !== undefined && running.delete(pid)) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // All of the group have ended.
    }
  }
}

/** Ours, without what a runner of tests around us says to its own. */
function childEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|VITE_|NODE_ENV|NODE_OPTIONS|TEST$|HOLDFAST_)/.test(name),
  );
  return Object.fromEntries(inherited);
}
