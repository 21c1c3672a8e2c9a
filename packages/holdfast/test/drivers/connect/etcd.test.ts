import { connect } from "holdfast/connect";
import { describe, expect, test } from "vitest";

describe("connect() with a URL of etcd", () => {
  test("opens a driver on all members", async () => {
    const driver = await connect("etcd://user:secret@127.0.0.1:2379,127.0.0.2:2379,[::1]/?prefix=app%2F");
    expect(driver.capabilities).toMatchObject({ kinds: ["mutex"], guarantee: "consensus" });
    const nodes = await driver.nodes();
    expect(nodes.map(({ node }) => node)).toEqual(["127.0.0.1:2379", "127.0.0.2:2379", "[::1]:2379"]);
    await driver.close();
  });

  test.each(["etcd://127.0.0.1/path", "etcd://127.0.0.1/?other=1", "etcd://127.0.0.1/#part", "etcd://"])(
    "refuses %s",
    async (url) => {
      await expect(connect(url)).rejects.toThrow(TypeError);
    },
  );

  test("shows no secret in an error", async () => {
    const refused = connect("etcd://user:secret@127.0.0.1:99999");
    await expect(refused).rejects.toThrow(/^(?!.*secret)/);
  });
});
