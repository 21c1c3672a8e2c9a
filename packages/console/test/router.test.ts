import { expect, test } from "vitest";

import { hrefOf, routeOf } from "../src/router.ts";

test("the folder of the console is the page of locks, below any path", () => {
  expect(routeOf("https://a.example/tools/console/?q=late", "/tools/console/")).toMatchObject({
    page: "locks",
  });
  expect(routeOf("https://a.example/console/lock?key=order%3A1", "/console/").params.get("key")).toBe(
    "order:1",
  );
  expect(routeOf("https://a.example/console/elsewhere", "/console/").page).toBe("unknown");
});

test("an address leaves out empty parameters and escapes the others", () => {
  expect(hrefOf("locks")).toBe("./");
  expect(hrefOf("lock", { key: "a b&c", reason: "", from: undefined })).toBe("./lock?key=a+b%26c");
});
