import { fencedPut, fencedS3, type S3Put } from "holdfast/fencing";
import { describe, expect, test } from "vitest";

const failure = (status: number): Error =>
  Object.assign(new Error(String(status)), { $metadata: { httpStatusCode: status } });

/** An object in memory that fails as the AWS SDK does. */
class FakeObject {
  etag: string | undefined;
  fence: string | undefined;
  puts: S3Put[] = [];

  head = async (): Promise<{ ETag: string; Metadata: Record<string, string> }> => {
    if (this.etag === undefined) {
      throw failure(404);
    }
    return { ETag: this.etag, Metadata: this.fence === undefined ? {} : { fence: this.fence } };
  };

  put = async (request: S3Put): Promise<void> => {
    this.puts.push(request);
    if (request.IfMatch !== this.etag) {
      throw failure(412);
    }
    this.etag = `"${String(request.Body)}"`;
    this.fence = request.Metadata["fence"];
  };
}

describe("fencedPut", () => {
  test("creates an object only if the key has none", () => {
    expect(fencedPut({ fencingToken: 7n, body: "7" }, undefined)).toEqual({
      Body: "7",
      Metadata: { fence: "7" },
      IfNoneMatch: "*",
    });
  });

  test("replaces only the object that was read, and keeps other metadata of the caller", () => {
    const head = { ETag: '"a"', Metadata: { fence: "7" } };
    expect(fencedPut({ fencingToken: 7n, body: "x7", metadata: { kind: "price" } }, head)).toEqual({
      Body: "x7",
      Metadata: { kind: "price", fence: "7" },
      IfMatch: '"a"',
    });
  });

  test("is stale if the object has a larger token", () => {
    const head = { ETag: '"a"', Metadata: { fence: "8" } };
    expect(fencedPut({ fencingToken: 7n, body: "7" }, head)).toBe("stale");
  });

  test("guards an object that was written without a token", () => {
    expect(fencedPut({ fencingToken: 1n, body: "1" }, { ETag: '"a"' })).toMatchObject({ IfMatch: '"a"' });
  });

  test("refuses a body without the token, because equal bodies have equal ETags", () => {
    expect(() => fencedPut({ fencingToken: 7n, body: "x" }, undefined)).toThrow(
      "Expected `body` to contain the fencing token 7",
    );
  });

  test("refuses an object with a fence that is no number", () => {
    const head = { ETag: '"a"', Metadata: { fence: "x" } };
    expect(() => fencedPut({ fencingToken: 7n, body: "7" }, head)).toThrow("to be a decimal number");
  });
});

describe("fencedS3", () => {
  test("reads the object again if another write came in between, and is then refused by it", async () => {
    const object = new FakeObject();
    const overtaken = async (request: S3Put): Promise<void> => {
      if (object.puts.length === 0) {
        await fencedS3({ fencingToken: 9n, body: "9", head: object.head, put: object.put });
      }
      await object.put(request);
    };
    const outcome = await fencedS3({ fencingToken: 8n, body: "8", head: object.head, put: overtaken });
    expect(outcome).toBe("stale");
    expect(object.fence).toBe("9");
  });

  test("writes over an older holder that came in between", async () => {
    const object = new FakeObject();
    const overtaken = async (request: S3Put): Promise<void> => {
      if (object.puts.length === 0) {
        await fencedS3({ fencingToken: 8n, body: "8", head: object.head, put: object.put });
      }
      await object.put(request);
    };
    expect(await fencedS3({ fencingToken: 9n, body: "9", head: object.head, put: overtaken })).toBe(
      "written",
    );
    expect(object.fence).toBe("9");
  });

  test("rejects with any other error, and after 16 failed conditions", async () => {
    const { head } = new FakeObject();
    const write = { fencingToken: 1n, body: "1", head };
    await expect(fencedS3({ ...write, put: () => Promise.reject(failure(503)) })).rejects.toThrow("503");
    await expect(fencedS3({ ...write, head: () => Promise.reject(failure(403)), put: head })).rejects.toThrow(
      "403",
    );
    let puts = 0;
    const put = (): Promise<never> => {
      puts += 1;
      return Promise.reject(failure(412));
    };
    await expect(fencedS3({ ...write, put })).rejects.toThrow("412");
    expect(puts).toBe(16);
  });
});
