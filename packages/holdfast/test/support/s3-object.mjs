/** The server reads the name of the key, and does not verify a signature. */
const authorization =
  "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/** An object of a server that verifies no signature, with the calls and the errors that `fencedS3` expects. */
export function s3Object(url) {
  const request = async (init) => {
    const response = await fetch(url, { ...init, headers: { ...init.headers, authorization } });
    if (!response.ok) {
      throw Object.assign(new Error(`${init.method}: ${response.status}`), { status: response.status });
    }
    return response;
  };
  return {
    async head() {
      const { headers } = await request({ method: "HEAD" });
      return { ETag: headers.get("etag"), Metadata: { fence: headers.get("x-amz-meta-fence") ?? undefined } };
    },
    put({ Body, Metadata, IfMatch, IfNoneMatch }) {
      const headers = { "x-amz-meta-fence": Metadata.fence };
      if (IfMatch !== undefined) headers["if-match"] = IfMatch;
      if (IfNoneMatch !== undefined) headers["if-none-match"] = IfNoneMatch;
      return request({ method: "PUT", body: Body, headers });
    },
    content: async () => (await request({ method: "GET" })).text(),
  };
}
