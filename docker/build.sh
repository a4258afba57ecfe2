#!/bin/sh
# build.sh SOURCE TARGET: install the service of SOURCE into a new environment at TARGET, ready to be copied away.
set -eu
source=$1 target=$2
python3 -m venv "$target"
"$target/bin/python" -m pip install --no-cache-dir --disable-pip-version-check "$source[service]"
# What runs needs no installer: less to carry, less to attack.
"$target/bin/python" -m pip uninstall --yes --quiet --disable-pip-version-check pip
"$target/bin/feedrank" --version
