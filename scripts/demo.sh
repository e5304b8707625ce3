#!/bin/sh
# The main job on real input: fetch, capture, prove identity, train, evaluate, use. Every command
# is printed before it runs and can be typed by hand. Takes about ten minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
work=${1:-.nestor}
corpus=$work/tiny
runs=$work/demo
start=$(date +%s)
mkdir -p "$work"
rm -rf "$runs"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
run() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

step '1. Is there an LLVM to work with? Build the plugin for it and prove that it changes nothing.'
run nestor doctor

step '2. Fetch six projects from the Debian archive and capture their builds.'
run nestor corpus fetch tiny "$corpus"

step '3. The identity gate on every module; then one policy in C++ and over LLVM'"'"'s own channel.'
run nestor identity "$corpus"
run nestor identity "$corpus" --policy mlgo2020

step '4. Train: clone the default heuristic, then improve the clone by evolution strategies.'
run nestor train inlining-size --corpus "$corpus" --out "$runs/bc" --learner bc
run nestor train inlining-size --corpus "$corpus" --out "$runs/es" --learner es \
  --init "$runs/bc/policy.safetensors"

step '5. Evaluate on the projects that training never saw; the published 2020 policy beside it.'
run nestor evaluate --corpus "$corpus" --policy "$runs/es/policy.safetensors"
run nestor evaluate --corpus "$corpus" --policy mlgo2020

step '6. Use it: a real program by the unmodified clang under the trained policy.'
policy=$runs/es/policy.safetensors
run nestor build lz4 --corpus "$corpus" --policy "$policy" --out "$runs/lz4"
run "$runs/lz4" -q -f LICENSE "$runs/LICENSE.lz4"
run "$runs/lz4" -q -d -f "$runs/LICENSE.lz4" "$runs/LICENSE"
run cmp LICENSE "$runs/LICENSE"
run nestor clang "$policy" -- -Oz src/nestor/native/identity/probe.c -o "$runs/probe"
run "$runs/probe" || true
run nestor flags "$policy"

printf '\nDone in %d s. Curves: .venv/bin/tensorboard --logdir %s\n' \
  $(($(date +%s) - start)) "$runs"
