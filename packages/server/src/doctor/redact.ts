/** Parameters of a URL that are secrets, for example `sentinelPassword`. */
const secretParameters = /pass|secret|token/i;
/** A shorter text is no secret, and would also occur in words. */
const shortestSecret = 3;

/** Replaces the secrets of a URL in a text, such as the message of a client library. */
export function redactor(url: string, ...others: readonly (string | undefined)[]): (text: string) => string {
  const [, user = ""] = /^[a-z][a-z0-9+.-]*:\/\/([^@/?#]*)@/i.exec(url) ?? [];
  const query = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? "");
  const secrets = [
    user.slice(user.indexOf(":") + 1),
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
