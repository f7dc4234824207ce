#!/bin/sh
# Make the environment of the course, or bring it up to date; make calls this.
#     sh tools/environment.sh VENV BIN [PYTHON]
set -eu
venv=$1 bin=$2 python=${3:-}

fail() {
    printf '\nnormlab: %s\n' "$@" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# 1. A Python that is new enough: the one given, else the first that is found.
if [ -z "$python" ]; then
    for python in python3 python3.13 python3.12 python3.11 python; do
        is_new_enough "$python" && break
    done
fi
version=$("$python" --version 2>&1) || version="none ($python)"
is_new_enough "$python" || fail "Python 3.11 or newer is needed; found: $version.
Install one from https://www.python.org/downloads/ and run make again, or name one:
    make PYTHON=/path/to/python3.12"

# 2. The virtual environment.
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail \
    "$version ($python) comes without the modules venv and ensurepip.
On Debian and Ubuntu: sudo apt install python3-venv, then run make again.
Elsewhere install Python from https://www.python.org/downloads/."
echo "normlab: making the environment in $venv with $version (once; a few minutes)"
"$python" -m venv "$venv" || fail "could not make $venv.
Remove it (make clean) and run make again; on Debian and Ubuntu make sure that
the package python3-venv is installed."

# 3. The packages, exactly as locked, then normlab itself, from this folder. An
# environment that is only brought up to date has most of them: pip need not list them.
quiet=$(test ! -e "$venv/.normlab" || echo --quiet)
"$bin/python" -m pip install $quiet --no-compile -r requirements.lock || fail \
    "could not install the packages; what pip says stands above.
Is there a network? pip must reach its package index, or the one that PIP_INDEX_URL
names. Run make again and pip goes on with what is already there."
"$bin/python" -m pip install --quiet --no-deps --no-build-isolation -e . || fail \
    "could not install normlab itself; what pip says stands above."
"$bin/python" -m pip check || fail \
    "the installed packages do not fit together; make clean, then run make again."
# JupyterLab would ask a new user whether to fetch news; here it stays off the network.
"$bin/python" -m jupyter labextension disable --level=sys_prefix \
    "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1 || true
echo "normlab: the environment is ready"
