#!/bin/sh
# redis.sh: Redis with the password of the secret. Every write is on disk before it is acknowledged: the promise of the
# contract rests on it. The password goes by a file, since everybody may read the arguments of a process.
set -eu
password=${PASSWORD_FILE:-/run/secrets/redis-password} config=${CONFIG:-/tmp/password.conf}
printf 'requirepass %s\n' "$(cat "$password")" >"$config"
exec docker-entrypoint.sh redis-server "$config" \
    --appendonly yes --appendfsync always --maxmemory-policy noeviction "$@"
