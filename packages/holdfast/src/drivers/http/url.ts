/**
 * Takes the URL of a lock service apart. It may have a secret, so no error shows any of it.
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
      "Expected the URL of a lock service to have no user, query or fragment; a token can stand in it as in https://:token@host",
    );
  }
  const token = decodedOf(address.password);
  address.password = "";
  address.pathname = address.pathname.replace(/\/*$/, "/");
  return { address, token };
}

function decodedOf(password: string): string | undefined {
  try {
    return password === "" ? undefined : decodeURIComponent(password);
  } catch {
    throw new TypeError("Expected the token in the URL to be encoded: what is no letter or digit as %XX");
  }
}
