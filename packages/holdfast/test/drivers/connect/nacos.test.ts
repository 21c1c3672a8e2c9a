import { connect } from "holdfast/connect";
import { describe, expect, test } from "vitest";

describe("connect() with a URL of Nacos", () => {
  test("opens a driver on all servers", async () => {
    const driver = await connect(
      "nacos://user:secret@127.0.0.1:8849,127.0.0.2,[::1]/?namespace=app&group=locks",
    );
    expect(driver.capabilities).toMatchObject({ kinds: ["mutex"], guarantee: "database" });
    const nodes = await driver.nodes();
    expect(nodes.map(({ node }) => node)).toEqual(["127.0.0.1:8849", "127.0.0.2:8848", "[::1]:8848"]);
    await driver.close();
  });

  test.each([
    "nacos://127.0.0.1/path",
    "nacos://127.0.0.1/?other=1",
    "nacos://127.0.0.1/#part",
    "nacos://127.0.0.1/?maxClockDifferenceMs=soon",
    "nacos://",
  ])("refuses %s", async (url) => {
    await expect(connect(url)).rejects.toThrow(TypeError);
  });

  test("shows no secret in an error", async () => {
    const refused = connect("nacos://user:secret@127.0.0.1:99999");
    await expect(refused).rejects.toThrow(/^(?!.*secret)/);
  });
});
