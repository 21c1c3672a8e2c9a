import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

/** Runs a program on a terminal. Each line of stdin is written to the terminal: "S" is Ctrl-S, "Q" is Ctrl-Q. Prints the exit code. */
const onTerminal = `
import os, pty, subprocess, sys, threading, time
master, slave = pty.openpty()
program = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
os.close(slave)
def type_lines():
    for line in sys.stdin:
        os.write(master, {"S": b"\\x13", "Q": b"\\x11"}[line.strip()])
def copy():
    try:
        while True:
            sys.stderr.write(os.read(master, 4096).decode()); sys.stderr.flush()
    except OSError:
        pass
for work in (type_lines, copy):
    threading.Thread(target=work, daemon=True).start()
print(program.wait(), flush=True)

end = time.time() + 10
while time.time() < end and not os.path.exists("seen"):
    time.sleep(0.02)
`;

/** Runs a program whose stderr has no reader. Prints the exit code. */
const withoutReader = `
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
print(subprocess.run(sys.argv[1:], stderr=writer, stdin=subprocess.DEVNULL).returncode)
`;

/** Runs a program in the background of a terminal that is then closed. Prints the exit code. */
const onClosedTerminal = `
import os, pty, subprocess, sys, time
master, slave = pty.openpty()
def own_terminal():
    os.setsid()
    import fcntl, termios
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=own_terminal, pass_fds=(slave,))
os.close(slave)
while not os.path.exists("begun"):
    time.sleep(0.02)
os.close(master) # the kernel sends HUP
print(program.wait(), flush=True)
`;

const beats = "while :; do date +%s%N >> beats; sleep 0.01; done";

onRedis("a terminal or reader of stderr that has stopped", () => {
  const cli = commandLine();

  test("delays no signal: after Ctrl-S the command is dead before another can start", async () => {
    const flags = ["--ttl", "2s", "--grace", "300ms", "--max-hold", "1s"];
    const words = [process.execPath, cli.program, "run", "-k", "stopped", ...flags, "--", "sh", "-c", beats];
    const running = cli.spawn("python3", ["-c", onTerminal, ...words], { isInteractive: true });
    await waitUntil(async () => (await cli.read("beats")) !== "", "the command runs");
    running.child.stdin?.write("S\n");
    const second = await cli.run(["run", "-k", "stopped", "--wait", "20s", "--", "date", "+%s%N"]);
    const last = BigInt((await cli.read("beats")).trim().split("\n").at(-1) ?? "0");
    expect(second).toMatchObject({ code: 0 });
    expect(last).toBeLessThan(BigInt(second.out.trim()));
    await waitUntil(() => running.out() !== "", "holdfast ends");
    expect(running.out()).toBe("79\n");
    expect(running.err()).not.toMatch(/--max-hold/);
    running.child.stdin?.write("Q\n");
    await waitUntil(() => /--max-hold.*SIGTERM to the command/.test(running.err()), "the words follow");
    await cli.spawn("touch", ["seen"]).ended;
    await running.ended;
  });

  test.each([
    ["--verbose", "sleep 0.5; echo finished >> log; exit 3", 3],
    ["--verbose", "sleep 600 & exit 7", 7],
  ])(
    "a closed one changes neither the end of the command nor the code: %s %s",
    async (flag, script, code) => {
      await cli.spawn("rm", ["-f", "log"]).ended;
      const words = [process.execPath, cli.program, "run", "-k", "closed", flag, "--", "sh", "-c", script];
      const { out } = await cli.spawn("python3", ["-c", withoutReader, ...words]).ended;
      expect(out).toBe(`${code}\n`);
      expect(await cli.read("log")).toBe(code === 3 ? "finished\n" : "");
      expect(await cli.redis.client().exists("lock:closed")).toBe(0);
    },
  );

  test.each([
    [["--nohup"], "0\n", "finished\n"],
    [[], "129\n", ""],
  ])("that closes ends the run, unless it has --nohup: %j", async (flags, code, log) => {
    await cli.spawn("rm", ["-f", "begun", "log"]).ended;
    const script = "touch begun; sleep 0.5; echo finished >> log";
    const words = [process.execPath, cli.program, "run", "-k", "left", ...flags, "--", "sh", "-c", script];
    const { out } = await cli.spawn("python3", ["-c", onClosedTerminal, ...words]).ended;
    expect(out).toBe(code);
    expect(await cli.read("log")).toBe(log);
    expect(await cli.redis.client().exists("lock:left")).toBe(0);
  });
});
