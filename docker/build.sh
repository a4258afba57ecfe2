#!/bin/sh
# build.sh SOURCE TARGET: install the service of SOURCE into a new environment at TARGET, ready to be copied away.
# What it needs is taken by SOURCE/docker/requirements.lock: no file with another checksum, none that runs code to be built.
# INSTALL_OPTIONS are handed to pip for that, e.g. an index. With LOCK= nothing is taken, for who brings it along.
set -eu
source=$1 target=$2
lock=${LOCK-$source/docker/requirements.lock}
python3 -m venv "$target"
pip() { "$target/bin/python" -m pip "$@" --disable-pip-version-check --quiet; }
if [ -n "$lock" ]; then
    # shellcheck disable=SC2086  # options are words
    pip install --no-cache-dir ${INSTALL_OPTIONS:-} --require-hashes --no-deps --only-binary :all: --requirement "$lock"
fi
pip wheel --no-deps ${lock:+--no-build-isolation} --wheel-dir "$target/wheels" "$source"
pip install --no-cache-dir --no-deps --no-index "$target"/wheels/*.whl
if [ -n "$lock" ]; then pip check; fi
# What runs needs no installer: less to carry, less to attack.
rm -r "$target/wheels"
pip uninstall --yes setuptools pip
"$target/bin/feedrank" --version
