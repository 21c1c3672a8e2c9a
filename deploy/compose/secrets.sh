#!/bin/sh
# Creates the secrets of the Compose file in ./secrets: the auth file with the hashes of two tokens, the tokens, the key that signs lease
# ids, and Grafana's password. Existing secrets stay.
set -eu
cd "${1:-$(dirname "$0")}"
test ! -e secrets || { echo "secrets exists; delete it to create new secrets" >&2; exit 1; }

umask 077
mkdir secrets
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
token() { printf 'hf_%s' "$(random)" > "secrets/$1.token"; }
hash() { sha256sum < "secrets/$1.token" | cut -d ' ' -f 1; }

token client
token metrics
random > secrets/grafana.password
printf 'HOLDFAST_LEASE_KEY=%s\n' "$(random)" > secrets/holdfast.env
cat > secrets/auth.json <<END
{
  "tokens": [
    {
      "name": "client",
      "sha256": "$(hash client)",
      "grants": [
        { "scope": "lock:acquire", "prefix": "" },
        { "scope": "lock:read", "prefix": "" },
        { "scope": "lock:force", "prefix": "" }
      ]
    },
    { "name": "prometheus", "sha256": "$(hash metrics)", "grants": [{ "scope": "admin", "prefix": "" }] }
  ]
}
END
# The users of the containers read these files. The folder protects them from other users of this machine.
chmod 644 secrets/auth.json secrets/metrics.token secrets/grafana.password
echo "secrets/client.token is the token of a client: export HOLDFAST_TOKEN=\$(cat secrets/client.token)"
