#!/usr/bin/env bash
# Writes the vectors anew and compares them with those of the repository. Fails only where they differ, or where the
# reference itself fails; where its requirements cannot be had, it says so and passes.
set -euo pipefail
cd "$(dirname "$0")"
# Nothing is left in the checkout.
export PYTHONDONTWRITEBYTECODE=1

fits() { "$1" -c 'import importlib.metadata as m, sys
wanted = [line.split("==") for line in open("requirements.txt").read().split()]
sys.exit(sys.version_info < (3, 11) or any(m.version(name) != version for name, version in wanted))' 2>/dev/null; }
skip() { echo "VECTORS NOT CHECKED AGAINST THE REFERENCE: $1" >&2; exit 0; }

python=python3
if ! fits "$python"; then
  venv="${VEILSUM_REFERENCE_VENV:-${TMPDIR:-/tmp}/veilsum-reference-venv}"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || skip "there is no Python 3.11 or newer here"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || skip "a virtual environment cannot be made in $venv"
  python="$venv/bin/python"
  fits "$python" || "$python" -m pip install --quiet --disable-pip-version-check -r requirements.txt \
    || skip "pip cannot install $(paste -sd" " requirements.txt); is an index in reach?"
fi

new="$(mktemp -d)"
trap 'rm -rf "$new"' EXIT
"$python" write_vectors.py "$new"
if ! diff -r "$new" ../vectors/v4; then
  echo "the vectors of the repository are not those that the reference writes (see above; < new, > repository)" >&2
  exit 1
fi
echo "$(ls "$new" | wc -l) vector files are as the reference writes them"
