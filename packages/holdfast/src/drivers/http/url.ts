/**
 * Splits the URL of a lock service into address and token. No error contains the URL, because the URL may contain a secret.
 * @throws {TypeError}
 */
export function readServiceUrl(url: string | URL): { address: URL; token: string | undefined } {
  const text = String(url);
  const address = URL.canParse(text) ? new URL(text) : undefined;
  if (!address || (address.protocol !== "http:" && address.protocol !== "https:")) {
    throw new TypeError("Expected `url` to be the http: or https: address of a lock service");
  }
  if (address.username !== "" || address.search !== "" || address.hash !== "") {
    throw new TypeError(
      "Expected the URL of a lock service to have no user, query or fragment; write a token as in https://:token@host",
    );
  }
  const token = decode(address.password);
  address.password = "";
  address.pathname = address.pathname.replace(/\/*$/, "/");
  return { address, token };
}

function decode(password: string): string | undefined {
  try {
    return password === "" ? undefined : decodeURIComponent(password);
  } catch {
    throw new TypeError(
      "Expected the token in the URL to be percent-encoded: characters other than letters and digits as %XX",
    );
  }
}
