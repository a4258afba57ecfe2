#!/bin/sh
# build.sh SOURCE TARGET: install the service of SOURCE into a new environment at TARGET, ready to be copied away.
# INSTALL_OPTIONS are handed to pip for the installation, e.g. an index to take the dependencies from.
set -eu
source=$1 target=$2
python3 -m venv "$target"
pip() { "$target/bin/python" -m pip "$@" --disable-pip-version-check --quiet; }
pip wheel --no-deps --wheel-dir "$target/wheels" "$source"
for wheel in "$target"/wheels/*.whl; do
    # shellcheck disable=SC2086  # options are words
    pip install --no-cache-dir ${INSTALL_OPTIONS:-} "$wheel[service,postgres]"
done
# What runs needs no installer: less to carry, less to attack.
rm -r "$target/wheels"
pip uninstall --yes pip
"$target/bin/feedrank" --version
