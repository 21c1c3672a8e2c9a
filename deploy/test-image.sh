#!/usr/bin/env bash
# Starts a built image with the embedded engine and checks it: not root, healthy, tokens required, and exit code 0 at SIGTERM.
#
#   deploy/test-image.sh IMAGE
set -euo pipefail
image=$1
folder=$(mktemp -d)
container=""
trap 'test -z "$container" || docker rm --force "$container" > /dev/null; rm -rf "$folder"' EXIT

"$(dirname "$0")/compose/secrets.sh" "$folder" > /dev/null
container=$(docker run --detach --read-only --cap-drop ALL --env HOLDFAST_URL=memory: --volume "$folder/secrets/auth.json:/etc/holdfast/auth.json:ro" "$image")

for _ in $(seq 60); do
  health=$(docker inspect --format '{{.State.Health.Status}}' "$container")
  test "$health" = healthy && break
  sleep 1
done
test "$health" = healthy

inside() { docker exec --env HOLDFAST_URL=http://127.0.0.1:7420 --env "HOLDFAST_TOKEN=$1" "$container" "${@:2}"; }
test "$(inside x id -u)" = 1000
test "$(inside "$(cat "$folder/secrets/client.token")" holdfast run --key deploy -- echo locked)" = locked
code=0
inside wrong holdfast run --key deploy -- echo locked || code=$?
test "$code" = 77

docker stop "$container" > /dev/null
test "$(docker inspect --format '{{.State.ExitCode}}' "$container")" = 0
echo "$image is not root, is healthy, requires a token, and ends with 0"
