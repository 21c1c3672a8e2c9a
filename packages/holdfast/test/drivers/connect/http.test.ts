import { connect } from "holdfast/connect";
import { expect, test } from "vitest";

test("the URL of a lock service is read at once, and no error shows its secrets", async () => {
  for (const url of ["http://user:secret@host", "https://:secret@host/?a=secret", "http://host/#secret"]) {
    expect(() => connect(url)).toThrow(TypeError);
    expect(() => connect(url)).not.toThrow(/secret/);
  }
  expect(() => connect("http://:one@host", { password: "other" })).toThrow(/in both/);
  expect(() => connect("http://host", { database: 2 })).toThrow(/Unknown option `database`/);
  const driver = await connect("https://:one@host/locks/", { commandTimeoutMs: 100 });
  expect(driver.capabilities.kinds).toEqual(["mutex", "read-write", "semaphore"]);
  await driver.close();
});

test("a service that is down is reported as an unreachable engine", async () => {
  const driver = await connect("http://127.0.0.1:9", { commandTimeoutMs: 1_000 });
  await expect(driver.inspect("key")).rejects.toMatchObject({ code: "engine-unavailable", outcome: "none" });
  await driver.close();
});
