import { connect } from "holdfast/connect";
import { describe, expect, test } from "vitest";

describe("connect() with a URL of ZooKeeper", () => {
  test("opens a driver on all servers", async () => {
    const driver = await connect(
      "zookeeper://user:p%40ss@127.0.0.1:1,127.0.0.2:2,[::1]:3/apps/locks?sessionTimeoutMs=4000&commandTimeoutMs=300",
    );
    expect(driver.capabilities).toMatchObject({ kinds: ["mutex"], guarantee: "consensus" });
    const nodes = await driver.nodes();
    expect(nodes.map(({ node }) => node)).toEqual(["127.0.0.1:1", "127.0.0.2:2", "[::1]:3"]);
    await driver.close();
  });

  test.each([
    "zookeeper://127.0.0.1/?other=1",
    "zookeeper://127.0.0.1/#part",
    "zookeeper://",
    "zookeeper://user@127.0.0.1",
    "zookeeper://127.0.0.1/zookeeper/quota",
    "zookeeper://127.0.0.1/a//b",
    "zookeeper://127.0.0.1:1,",
    "zookeeper://127.0.0.1/?sessionTimeoutMs=1",
  ])("refuses %s", async (url) => {
    await expect(connect(url)).rejects.toThrow(/Expected/);
  });

  test("shows no secret in an error", async () => {
    await expect(connect("zookeeper://user:secret@127.0.0.1:99999")).rejects.toThrow(/^(?!.*secret)/);
  });
});
