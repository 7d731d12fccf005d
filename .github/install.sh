#!/usr/bin/env bash
# Install perfci from a folder into the Python that is here: beside its torch, or without any. What
# is there stays as it is; where that cannot be, pip says what is in the way.
#
#   install.sh FOLDER [EXTRA]
set -euo pipefail
export PIP_DISABLE_PIP_VERSION_CHECK=1
there=$(mktemp) lacking=$(mktemp)
trap 'rm -f "$there" "$lacking"' EXIT
python -m pip list --format=freeze --exclude perfci > "$there"
python -m pip install --quiet --no-deps "$1"
python - "${2:-}" > "$lacking" << 'PYTHON'
import sys
from importlib.metadata import requires

for requirement in requires("perfci") or ():
    name, _, marker = requirement.partition(";")
    wanted = not marker or (sys.argv[1] and f'extra == "{sys.argv[1]}"' in marker)
    if wanted and not name.startswith("torch"):
        print(name)
PYTHON
python -m pip install --quiet --constraint "$there" --requirement "$lacking"
