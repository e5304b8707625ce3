#!/bin/sh
# Installs what is missing: Debian packages (as root or by sudo), a virtual environment, and
# Nestor in it, editable. Does nothing when nothing is missing.
set -eu

venv=${1:-.venv}
python=${PYTHON:-python3}
torch=${TORCH:-torch==2.13.0}
cd "$(dirname "$0")/.."

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() { echo "setup: $*" >&2; exit 1; }

# --- Debian packages -------------------------------------------------------------------------
# LLVM and what builds the plugin, the corpora and the tests; MLIR for schedules.
packages="clang-22 llvm-22 llvm-22-dev lld-22 libclang-rt-22-dev g++ make cmake ninja-build pkg-config
  mlir-22-tools libmlir-22-dev libomp-22-dev doctest-dev valgrind groff-base python3-venv ca-certificates ccache meson autoconf automake libtool"
# The oldest LLVM that is tested, where the archive has it; without it tests are skipped.
older="clang-19 llvm-19-dev lld-19 libclang-rt-19-dev"

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
in_archive() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; }

missing=
for package in $packages; do
  # A Python that does not come from Debian brings its own venv.
  [ "$package" = python3-venv ] && "$python" -c 'import ensurepip, venv' 2>/dev/null && continue
  installed "$package" || missing="$missing $package"
done
if [ "$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null ||
    fail "these packages are missing and this is no Debian: install$missing by hand"
  [ -z "$as_root" ] || command -v sudo >/dev/null ||
    fail "as root, run: apt-get install$missing"
  say "Installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -q >/dev/null
  # shellcheck disable=SC2086  # a list of words
  $as_root apt-get install -q -y --no-install-recommends $missing >/dev/null ||
    fail "apt-get could not install$missing; see its message above"
fi
also=
for package in $older; do
  if ! installed "$package" && in_archive "$package"; then also="$also $package"; fi
done
if [ -n "$also" ] && { [ -z "$as_root" ] || command -v sudo >/dev/null; }; then
  say "Installing$also"
  # shellcheck disable=SC2086  # a list of words
  DEBIAN_FRONTEND=noninteractive $as_root \
    apt-get install -q -y --no-install-recommends $also >/dev/null ||
    say "apt-get could not install$also: the tests with that LLVM will be skipped"
fi

# --- Python ----------------------------------------------------------------------------------
# Where the environment forbids bytecode (PYTHONDONTWRITEBYTECODE, as in many containers), each start
# of a command would compile its sources: 0.1 s more.
compile() { PYTHONDONTWRITEBYTECODE='' "$venv/bin/python" -m compileall -q -j 2 src || :; }

# The environment is complete when it carries the digest of what it was made from.
wanted=$({ cat pyproject.toml scripts/setup.sh src/launcher/nestor; "$python" --version; echo "$torch"; } | sha256sum)
if [ "$(cat "$venv/.complete" 2>/dev/null || true)" = "$wanted" ]; then
  compile
  exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or newer is needed; name one with PYTHON=..."
[ -x "$venv/bin/python" ] || { say "Making $venv"; "$python" -m venv "$venv"; }
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

# The commands that an older pip writes import a library first: 10 ms more for each compile by
# 'nestor clang'.
pip install -q 'pip>=25.1'

# torch first, so that nothing else chooses a build of it. Its default build for Linux brings
# several GB of GPU packages; a CPU machine must not get them.
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  say "Installing $torch"
  gpu() { pip install --dry-run --quiet --report - "$@" 2>/dev/null |
    grep -qE '"name": "(nvidia-|cuda-|triton)'; }
  if gpu "$torch"; then
    fail "the package index offers only a GPU build of torch: pass a CPU build, as in" \
      "'make setup TORCH=/path/to/torch-cpu.whl'"
  fi
  pip install -q "$torch"
fi
say "Installing Nestor and its Python packages"
pip install -q -e '.[dev]'
compile
printf '%s\n' "$wanted" >"$venv/.complete"
