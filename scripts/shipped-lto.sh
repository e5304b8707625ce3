#!/bin/sh
# Make the policies shipped-lto and distilled-lto again from nothing: fetch the bench tier, train
# inside LTO, judge by full and thin LTO, and write the figures of the pages. Some hours on two quiet cores; training
# and judging go on where they were stopped. The policy in the package is replaced only when the new
# one is there.
set -eu
. "$(dirname "$0")/common.sh"
seed=${2:-0}
run=$work/shipped-lto-$seed
# The training projects that the packaged policy was made from; without the list, all.
projects="angelscript box2d bzip2 flac geographiclib jsoncpp lame leveldb libjpeg-turbo mksh mujs re2
  sed soundtouch tetgen tidy tinyxml2 xz zlib zstd"
kept=benchmarks/results/lto_programs.jsonl
kept_trials=benchmarks/results/lto_distilled_programs.jsonl

run nestor corpus fetch bench "$work/bench"
run nestor corpus overlap "$work/bench"
run nestor train inlining-size --corpus "$work/bench" --out "$run" --seed "$seed" \
  --distil.build full-lto --distil.compiles 12 --distil.candidates 3 --distil.cautions 0.35 0.5 \
  --distil.gain.outliers 0.18 --distil.trees.rounds 80 --distil.trees.coarse-rounds 40 \
  --distil.trees.leaves 15 --distil.trees.least-rows 30 --distil.projects $projects
cp "$run/policy.safetensors" src/nestor/problems/inlining_size/data/shipped-lto.safetensors
run python -m benchmarks.lto "$work/bench" --kept "$kept" --lto full thin \
  --json benchmarks/results/lto.json
# And the policy that makes inlining trials there, too.
run python -m benchmarks.inlining_trials make \
  src/nestor/problems/inlining_size/data/shipped-lto.safetensors --lto --in-callers --calls 12 \
  --copied 120 --instructions 2000 --out src/nestor/problems/inlining_size/data/distilled-lto.safetensors
run python -m benchmarks.lto "$work/bench" --kept "$kept_trials" --lto full thin \
  --policy distilled-lto
run python -m benchmarks.lto "$work/bench" --kept "$kept_trials" --compiles 25 \
  --out "$work/tuned-distilled-lto" --policy distilled-lto --json benchmarks/results/lto_distilled.json
run python -m benchmarks.tables
echo "The policy, the files lto*.json of benchmarks/results and the pages made from them are new;"
echo "run the tests and commit them together."
