import { inspect } from "node:util";

import { createLocks, type Driver } from "holdfast";
import { connect } from "holdfast/connect";
import { manualRandom } from "holdfast/testing";
import { expect, test, vi } from "vitest";

import { createService } from "../src/index.ts";
import { diagnose } from "../src/doctor/index.ts";

const secret = "S3cr3tPw";
const schemes =
  "redis rediss redis+sentinel redis+cluster redis+unix redlock redlocks postgres postgresql mysql mariadb etcd etcds zookeeper nacos upstash http https".split(
    " ",
  );
/** Forms of a URL, right and wrong, with %s for the scheme, %p for the password, and %x for an odd character. */
const forms = [
  "%s://u:%p@127.0.0.1:1/db",
  "%s://u:%p@127.0.0.1:1",
  "%s://:%p@127.0.0.1:1/0",
  "%s://u:%p@127.0.0.1:1,127.0.0.1:2/name",
  "%s://u:%p@127.0.0.1:99999/db",
  "%s://u:%p@[::1/db",
  "%s://u:%p@:x/db",
  "%s://u:%p@127.0.0.1:1/db?nope=1",
  "%s://u:%p@127.0.0.1:1/db?maxConnections=x",
  "%s://127.0.0.1:1/db?password=%p",
  "%s://127.0.0.1:1?token=%p",
  "%s://127.0.0.1:1/db?sslmode=require&sslpassword=%p",
  "%s://u:%p%x@127.0.0.1:1/db",
  "%s://u:%x%p@127.0.0.1:1/db",
  "%s://u:a%x%p%xb@127.0.0.1:1/db",
  "%s:u:%p@127.0.0.1",
  "%s//u:%p@127.0.0.1:1/db",
  "u:%p@127.0.0.1:1",
  " %s://u:%p@127.0.0.1:1/d b",
  "%s://u:%p@127.0.0.1:1/db#%x",
];
const odd = ["#", "/", "?", "@", "%zz", "%", ":", ",", " ", "\\", "&", "+", "[", "ü", "\n", "'"];
const cases = 1_000;
const limitMs = 1_500;

function within<T>(promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), limitMs)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A failure as its caller may print it, with all properties and causes. */
const shown = (error: unknown): string => inspect(error, { depth: null, showHidden: true });

async function failureOfLocks(url: string): Promise<string> {
  let driver: Driver | undefined;
  try {
    driver = await within(connect(url));
    const locks = driver && createLocks(driver);
    await within(locks?.tryAcquire("k") ?? Promise.resolve(null));
    return "";
  } catch (error) {
    return shown(error);
  } finally {
    await within(driver ? createLocks(driver).close() : Promise.resolve()).catch(() => undefined);
  }
}

test("no error of a URL has its password in any property, for 1 000 URLs", async () => {
  vi.spyOn(console, "error").mockReturnValue(); // mysql2 names each parameter that it does not know
  const random = manualRandom(7);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random.nextFloat() * all.length)] as T;
  const urls = Array.from({ length: cases }, () =>
    pick(forms)
      .replaceAll("%s", pick(schemes))
      .replaceAll("%p", secret)
      .replaceAll("%x", () => pick(odd)),
  );
  const leaks: string[] = [];
  const check = async (url: string): Promise<void> => {
    const doctor = async (): Promise<string> => {
      try {
        return JSON.stringify(await within(diagnose(url)));
      } catch (error) {
        return shown(error);
      }
    };
    const service = async (): Promise<string> => {
      try {
        await (await within(createService({ engine: url })))?.close();
        return "";
      } catch (error) {
        return shown(error);
      }
    };
    const texts = await Promise.all([failureOfLocks(url), doctor(), service()]);
    for (const [index, text = ""] of texts.entries()) {
      const at = text.indexOf(secret);
      if (at >= 0) {
        leaks.push(
          `${["locks", "doctor", "service"][index]} ${url}: ${text.slice(Math.max(0, at - 120), at + 40)}`,
        );
      }
    }
  };
  const rest = urls.values();
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      for (const url of rest) {
        await check(url);
      }
    }),
  );
  expect(leaks).toEqual([]);
});
