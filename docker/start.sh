#!/bin/sh
# start.sh: serve; on the first start make an admin key, since the service listens beyond loopback only with keys.
set -eu
if [ ! -e "$FEEDRANK_KEYS_FILE" ]; then
    (
        umask 077
        folder="$(dirname "$FEEDRANK_KEYS_FILE")"
        fresh="$(mktemp -d "$folder/.first-XXXXXX")"
        trap 'rm -r "$fresh"' EXIT
        feedrank keys add --file "$fresh/keys" --scope admin >"$fresh/first-key"
        # The link makes the file whole or not at all, on a full disk too; and of replicas that start at once on one
        # volume, only one can make it, and tells its key.
        if ln "$fresh/keys" "$FEEDRANK_KEYS_FILE" 2>/dev/null; then
            mv "$fresh/first-key" "$folder/first-key"
            echo "feedrank: the first admin key is in $folder/first-key; read it, keep it elsewhere, remove the file" >&2
        fi
    )
fi
exec feedrank serve "$@"
