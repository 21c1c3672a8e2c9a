import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("../manifests.mjs", import.meta.url));
interface Release {
  readonly version: string;
  readonly slug: string;
}
const { releaseOf, manifestOf, textOf } = (await import(program)) as {
  releaseOf: (root: object) => Release;
  manifestOf: (manifest: object, folder: string, release: Release, names: Set<string>) => object;
  textOf: (path: string, text: string, release: Release, formerSlug: string) => string;
};

const release = { version: "1.2.3", slug: "Acme/locks" };
const names = new Set(["holdfast", "@holdfast/server"]);

describe("the manifests", () => {
  test("of published packages have the version and the addresses", () => {
    const manifest = {
      name: "@holdfast/server",
      version: "1.0.0",
      license: "MIT",
      files: ["dist"],
      dependencies: { holdfast: "1.0.0", hono: "4.0.0" },
    };
    expect(manifestOf(manifest, "packages/server", release, names)).toEqual({
      name: "@holdfast/server",
      version: "1.2.3",
      homepage: "https://github.com/Acme/locks#readme",
      bugs: "https://github.com/Acme/locks/issues",
      repository: {
        type: "git",
        url: "git+https://github.com/Acme/locks.git",
        directory: "packages/server",
      },
      license: "MIT",
      author: "The Holdfast contributors",
      files: ["dist"],
      dependencies: { holdfast: "1.2.3", hono: "4.0.0" },
      publishConfig: { access: "public", provenance: true },
    });
  });

  test("of private packages have the version only", () => {
    const manifest = { name: "x", version: "1.0.0", private: true, devDependencies: { holdfast: "1.0.0" } };
    expect(manifestOf(manifest, "x", release, names)).toEqual({
      ...manifest,
      version: "1.2.3",
      devDependencies: { holdfast: "1.2.3" },
    });
  });
});

describe("other files", () => {
  test("get the new address, and images get the version too", () => {
    const text =
      "https://github.com/owner/x/issues, images.example/owner/x:1.0.0-rc.1, images.example/other/x:1.0.0";
    expect(textOf("a.md", text, release, "owner/x")).toBe(
      "https://github.com/Acme/locks/issues, images.example/acme/locks:1.2.3, images.example/other/x:1.0.0",
    );
  });

  test("keep their versions, except for charts and the example of the command line", () => {
    const text = "version: 1.0.0\n$ holdfast --version\n1.0.0\n";
    expect(textOf("docs/guide.md", text, release, "o/x")).toBe(text);
    expect(textOf("deploy/Chart.yaml", text, release, "o/x")).toContain("version: 1.2.3\n");
    expect(textOf("docs/cli.md", text, release, "o/x")).toContain("--version\n1.2.3\n");
  });
});

test("an address that is not a repository on GitHub is refused", () => {
  expect(releaseOf({ version: "1.2.3", repository: { url: "git+https://github.com/a/b.git" } })).toEqual({
    version: "1.2.3",
    slug: "a/b",
  });
  for (const repository of [
    undefined,
    { url: "https://github.com/a" },
    { url: "git+https://gitlab.com/a/b.git" },
  ]) {
    expect(() => releaseOf({ version: "1.2.3", repository })).toThrow("Expected `repository.url`");
  }
});
