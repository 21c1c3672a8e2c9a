/** Parameters of a URL that are secrets, for example `sentinelPassword`. */
const secretParameters = /pass|secret|token/i;
/** A shorter text is no secret, and would also occur in words. */
const shortestSecret = 3;

/** Replaces the secrets of a URL in a text, such as the message of a client library. */
export function redactor(url: string, ...others: readonly (string | undefined)[]): (text: string) => string {
  // Up to the last @, because a password may have the characters that end this part of a correct URL. The error then has pieces of it.
  const [, user = ""] = /^[a-z][a-z0-9+.-]*:\/{0,2}(.*)@/is.exec(url) ?? [];
  const password = user.slice(user.indexOf(":") + 1);
  const query = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? "");
  const secrets = [
    password,
    ...password.split(/[#/?@,:]/),
    ...[...query].filter(([name]) => secretParameters.test(name)).map(([, value]) => value),
    ...others.filter((text) => text !== undefined),
  ];
  const forms = [...new Set(secrets.flatMap((secret) => [secret, decoded(secret)]))]
    .filter(({ length }) => length >= shortestSecret)
    .sort((a, b) => b.length - a.length);
  return (text) => forms.reduce((rest, secret) => rest.replaceAll(secret, "***"), text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
