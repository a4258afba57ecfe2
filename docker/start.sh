#!/bin/sh
# start.sh: serve; on the first start make an admin key, since the service listens beyond loopback only with keys.
set -eu
if [ ! -e "$FEEDRANK_KEYS_FILE" ]; then
    first="$(dirname "$FEEDRANK_KEYS_FILE")/first-key"
    (umask 077 && feedrank keys add --file "$FEEDRANK_KEYS_FILE" --scope admin >"$first")
    echo "feedrank: the first admin key is in $first; read it, keep it elsewhere, remove the file" >&2
fi
exec feedrank serve "$@"
