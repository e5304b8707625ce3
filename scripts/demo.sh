#!/bin/sh
# The main job on real input: fetch, prove identity, train, evaluate, tune, use. Every command is
# printed before it runs and can be typed by hand. Takes six to eight minutes on two
# quiet cores, and some more the first time.
set -eu
. "$(dirname "$0")/common.sh"
corpus=$work/demo-corpus
runs=$work/demo
start=$(date +%s)
mkdir -p "$work"
rm -rf "$runs"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }

step '1. Is there an LLVM to work with? Build the plugin for it and prove that it changes nothing.'
run nestor doctor

step '2. Fetch seven projects from the Debian archive and capture their builds.'
run nestor corpus fetch demo "$corpus"

step '3. The identity gate on every module: the plugin with the default policy gives stock objects.'
run nestor identity "$corpus"

step '4. Train: search the training programs, and distil what was found into a policy.'
run nestor train inlining-size --corpus "$corpus" --out "$runs/distil" --distil.trials 2500

step '5. Evaluate on projects that training never saw, beside the shipped policy and others.'
policy=$runs/distil/policy.safetensors
run nestor evaluate --fresh --corpus "$corpus" --policy "$policy" --smoke
run nestor evaluate --fresh --corpus "$corpus" --policy shipped "$policy" threshold:15 mlgo2020 \
  --mode gc no-gc icf

step '6. Tune one program further: a reviewable list of decisions, used by plain clang.'
run nestor tune ninja --corpus "$corpus" --out "$runs/tuned" --compiles 6 --policy shipped
run head -12 "$runs/tuned/overrides.txt"

step '7. Use it: a real program by the unmodified clang under the shipped policy and the list.'
run nestor build ninja --corpus "$corpus" --policy shipped \
  --overrides "$runs/tuned/overrides.txt" --out "$runs/ninja"
run "$runs/ninja" --version
run nestor clang shipped -- -Oz src/nestor/native/identity/probe.c -o "$runs/probe"
run "$runs/probe" || true
run nestor flags shipped

printf '\nDone in %d s. Curves: .venv/bin/tensorboard --logdir %s\n' \
  $(($(date +%s) - start)) "$runs"
