import { spawn } from "node:child_process";

export interface Ended {
  /** The exit code; undefined: the program was stopped at its timeout. */
  readonly code: number | undefined;
  readonly output: string;
  readonly seconds: number;
}

export interface ChildOptions {
  readonly folder: string;
  readonly timeoutMs: number;
  /** The folder for temporary files. */
  readonly temporary: string;
}

/** The running process groups, by the id of their first process. */
const running = new Set<number>();

/** Runs a program of Node to its end. At the timeout, kills the program with all processes that it started. */
export function runNode(args: readonly string[], options: ChildOptions): Promise<Ended> {
  const { folder, timeoutMs, temporary } = options;
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      detached: true, // a new process group
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
      killGroup(pid); // its remaining processes
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

/** For an exit of this process while children run. */
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
      // All processes of the group have ended.
    }
  }
}

/** Our environment, without the variables of a test runner around this process. */
function childEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|VITE_|NODE_ENV|NODE_OPTIONS|TEST$|HOLDFAST_)/.test(name),
  );
  return Object.fromEntries(inherited);
}
