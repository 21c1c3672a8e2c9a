import { mkdir, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

onRedis("the start", () => {
  const cli = commandLine();
  const says = async (cache: string | undefined): Promise<string> => {
    const env = { XDG_CACHE_HOME: cache, HOME: "" };
    const { code, out, err } = await cli.run(["run", "-k", "start", "--", "echo", "started"], { env });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return out;
  };

  test("compiled code is cached with access for its user only", async () => {
    const cache = cli.file("own-cache");
    expect(await says(cache)).toBe("started\n");
    const folder = join(cache, "holdfast", "run");
    expect((await stat(folder)).mode & 0o022).toBe(0);
    expect(await readdir(folder)).toHaveLength(1);
    expect(await says(cache)).toBe("started\n");
  });

  test("the cache of another command is not used for run", async () => {
    const cache = cli.file("shared-cache");
    const sizeOf = async (use: string): Promise<number> => {
      const folder = join(cache, "holdfast", use);
      const files = await readdir(folder, { recursive: true, withFileTypes: true });
      const sizes = files
        .filter((file) => file.isFile())
        .map((file) => stat(join(file.parentPath, file.name)));
      return (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0);
    };
    await cli.run(["--version"], { env: { XDG_CACHE_HOME: cache } });
    await says(cache);
    expect(await sizeOf("run")).toBeGreaterThan(2 * (await sizeOf("others")));
  });

  test("the program starts even if no cache can be written", async () => {
    await writeFile(cli.file("no-folder"), "");
    expect(await says(cli.file("no-folder"))).toBe("started\n");
    expect(await says(undefined)).toBe("started\n");
  });

  describe.runIf(process.versions.node.startsWith("20."))("with the program's own cache", () => {
    test("a truncated or foreign cache is not used but written again, and older caches are removed", async () => {
      const folder = join(cli.file("bad-cache"), "holdfast", "run");
      await mkdir(folder, { recursive: true });
      const older = `${"0".repeat(32)}-v20.0.0-x64`;
      await writeFile(join(folder, older), "older");
      await says(cli.file("bad-cache"));
      const [name = ""] = await readdir(folder);
      expect(name).not.toBe(older);
      const kept = join(folder, name);
      const { size } = await stat(kept);
      await truncate(kept, 1_000);
      expect(await says(cli.file("bad-cache"))).toBe("started\n");
      expect((await stat(kept)).size).toBeGreaterThan(size / 2);
      await writeFile(kept, "nonsense");
      expect(await says(cli.file("bad-cache"))).toBe("started\n");
      expect(await readdir(folder)).toEqual([name]);
    });
  });
});
