/** The output of a ready service: its address, and a first acquire and release with curl. */
export function startupMessage(
  url: string,
  { guarantee, needsToken, hasConsole }: { guarantee: string; needsToken: boolean; hasConsole: boolean },
): string {
  const scope =
    guarantee === "process"
      ? "\nIts locks live in this process (guarantee: process): they end with it, and no other instance shares them.\n"
      : "";
  const token = needsToken ? ' -H "Authorization: Bearer $HOLDFAST_TOKEN"' : "";
  return `
The lock service is at ${url}
${hasConsole ? `Its web console is at ${url}/console/\n` : ""}${scope}
Try a lock for 30 s, and give it back:

  curl${token} --json '{"key":"order:555","ttlMs":30000}' ${url}/v1/leases
  curl${token} -X DELETE ${url}/v1/leases/<leaseId>

`;
}
