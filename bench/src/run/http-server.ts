import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { cpuMsOf } from "../measure/process-cpu.ts";

/** An HTTP server in its own process, with connections to the server. The server prints its address on its first line. */
export class HttpServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #agent: Agent;
  readonly #url: string;
  readonly #killOnExit: () => void;

  private constructor(child: ChildProcess, url: string, connections: number) {
    this.#child = child;
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#killOnExit = () => child.kill("SIGKILL");
    process.once("exit", this.#killOnExit);
  }

  static async start(
    args: readonly string[],
    { env, connections }: { env: NodeJS.ProcessEnv; connections: number },
  ): Promise<HttpServer> {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(child, "exit").then(() => {
      throw new Error("the HTTP server ended before it listened");
    });
    const [startupMessage] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
    ended.catch(() => {});
    return new HttpServer(child, /http:\/\/\S+/.exec(String(startupMessage))?.[0] ?? "", connections);
  }

  /** The CPU time of the server's process since its start. */
  get cpuMicros(): number {
    return cpuMsOf(this.#child.pid ?? Number.NaN) * 1_000;
  }

  /** @throws {Error} if the status is no success */
  send(method: string, path: string, body = ""): Promise<string> {
    return new Promise((resolve, reject) => {
      const headers =
        body === "" ? {} : { "content-type": "application/json", "content-length": body.length };
      const url = new URL(path, this.#url);
      const outgoing = request(url, { agent: this.#agent, method, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () => {
          if ((answer.statusCode ?? 500) < 300) resolve(text);
          else reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`));
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#killOnExit);
    this.#agent.destroy();
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }
}
