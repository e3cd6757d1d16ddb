#!/usr/bin/env bash
# The steps of `make setup`, which calls them when something changed, the last beside the others:
#
#   tools/setup.sh packages   check Python and Java, make .venv, install requirements.lock into it
#   tools/setup.sh project    install this project into .venv, editable
#   tools/setup.sh jars       fetch the Delta jars into .cache, write an archive of Spark's classes beside them
#   tools/setup.sh postgres   install a PostgreSQL server, for tests, if there is none
#
# and, for `make lock`:
#
#   tools/setup.sh lock       resolve pyproject.toml into requirements.lock (more arguments go to uv)
#
# What goes wrong ends in one sentence and the way out; the whole story is in .cache/setup-STEP.log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3}
VENV_PYTHON=.venv/bin/python
# Steps run side by side: each has a log of its own.
LOG=.cache/setup-${1:-}.log

say() { printf '%s\n' "$*"; }

fail() { # message, way out
    printf 'Set-up stopped: %s\nTo do: %s\n' "$1" "$2" >&2
    exit 1
}

is_new_enough() { # a Python command
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

check_python() {
    is_new_enough "$PYTHON" && return
    local found
    found="is $("$PYTHON" --version 2>&1)" || found="does not run"
    fail "Python 3.10 or newer is needed, and '$PYTHON' ${found}." \
        "install a newer Python, or name one: make setup PYTHON=python3.12"
}

check_java() {
    local java=java where="on the PATH" version major
    local way_out="install a Java runtime of version 17 or newer (Debian: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), or point JAVA_HOME at one."
    if [ -n "${JAVA_HOME:-}" ]; then
        java="$JAVA_HOME/bin/java" where="in JAVA_HOME ($JAVA_HOME)"
    fi
    version=$("$java" -version 2>&1) ||
        fail "Spark needs Java 17 or newer, and there is none ${where}." "$way_out"
    # openjdk version "17.0.15" …, java version "1.8.0_392"
    version=$(printf '%s\n' "$version" | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1)
    major=$(printf '%s\n' "${version#1.}" | sed 's/[^0-9].*//')
    [ "${major:-0}" -ge 17 ] ||
        fail "Spark needs Java 17 or newer, and the one ${where} is ${version:-of an unknown version}." "$way_out"
}

make_venv() {
    if ! is_new_enough "$VENV_PYTHON"; then
        say "Making .venv with $("$PYTHON" --version) ..."
        "$PYTHON" -m venv --clear .venv >"$LOG" 2>&1 ||
            fail "Python could not make a virtual environment (see $LOG)." \
                "install Python's venv module (Debian: apt install python3-venv) and run make setup again."
    fi
    if ! "$VENV_PYTHON" -m pip --version >/dev/null 2>&1; then
        "$VENV_PYTHON" -m ensurepip >"$LOG" 2>&1 ||
            fail "there is no pip in .venv (see $LOG)." "remove .venv and run make setup again."
    fi
}

pip_install() {
    # Nothing is built in isolation: the build tools come from the lock file too, with their hashes. Python compiles what it
    # imports; compiling everything here takes longer.
    "$VENV_PYTHON" -m pip install --disable-pip-version-check --no-input --no-build-isolation --use-pep517 --no-compile \
        "$@" >>"$LOG" 2>&1 && return
    if grep -qE 'NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|NameResolutionError|Connection (refused|reset)|Network is unreachable|Temporary failure in name resolution|Read timed out' "$LOG"; then
        fail "the Python package index could not be reached (see $LOG)." \
            "check the network (behind a proxy set HTTPS_PROXY, for a mirror set PIP_INDEX_URL) and run make setup again."
    fi
    fail "pip: $(grep -E '^ERROR: ' "$LOG" | tail -n 1 | cut -c 8- | cut -c -300) (see $LOG)" \
        "repair what it names and run make setup again."
}

install_packages() {
    check_python
    check_java
    make_venv
    say "Installing the packages of requirements.lock (minutes the first time: Spark alone is 450 MB) ..."
    : >"$LOG"
    awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' requirements.lock >.cache/build-tools.lock
    pip_install --require-hashes --no-deps -r .cache/build-tools.lock
    pip_install --require-hashes -r requirements.lock
}

install_project() {
    say "Installing viewkeeper into .venv ..."
    : >"$LOG"
    pip_install --no-deps --editable .
    local complaint
    complaint=$("$VENV_PYTHON" -m pip check 2>/dev/null | grep '^viewkeeper ' | head -n 1) || true
    [ -z "$complaint" ] ||
        fail "requirements.lock does not fit pyproject.toml: ${complaint}." "run make lock, then make setup."
}

fetch_jars() {
    # The package imports this module itself before it is run; nothing to warn of.
    "$VENV_PYTHON" -W ignore::RuntimeWarning:runpy -m viewkeeper.execution.jars
}

archive_classes() {
    # What Spark itself says while it starts is in the log; without an archive everything works, only slower.
    "$VENV_PYTHON" -m viewkeeper.execution.class_archive 2>"$LOG"
}

has_postgres() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

install_postgres() {
    has_postgres && return
    local way_out="install PostgreSQL 15 or newer (Debian: apt install postgresql; macOS: brew install postgresql@16) and run make setup again."
    command -v apt-get >/dev/null || fail "tests need a PostgreSQL server, and there is none." "$way_out"
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    say "Installing PostgreSQL for the tests ..."
    : >"$LOG"
    { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends postgresql; } >>"$LOG" 2>&1 ||
        fail "apt-get could not install PostgreSQL (see $LOG)." "$way_out"
    has_postgres || fail "PostgreSQL was installed and its programs are not found." "$way_out"
}

lock() {
    local uv=.venv/bin/uv
    [ -x "$uv" ] || uv=$(command -v uv) ||
        fail "uv is neither in .venv nor on the PATH." "run make setup, or install uv."
    # The lowest Python that we support; the lock file says itself where newer ones differ.
    "$uv" pip compile --quiet --universal --python-version 3.10 --generate-hashes --extra dev \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
        "$@" --output-file requirements.lock pyproject.toml
    say "Wrote requirements.lock; make setup installs it."
}

mkdir -p .cache
case "${1:-}" in
    packages) install_packages ;;
    project) install_project ;;
    jars) fetch_jars && archive_classes ;;
    postgres) install_postgres ;;
    lock) shift && lock "$@" ;;
    *) fail "tools/setup.sh does not know the step '${1:-}'." "run make help." ;;
esac
