#!/bin/sh
# Make the policy shipped-os again from nothing: fetch the bench tier at -Os, distil searches that are
# also weighed as parts of larger programs, evaluate, and write the figures of the model card. About
# two hours on two quiet cores; what was made is kept. The policy in the package is replaced only
# when the new one is there.
set -eu
. "$(dirname "$0")/common.sh"
seed=${2:-0}
run=$work/shipped-os-$seed
evaluate() {
  run nestor evaluate --problem inlining-size-os --corpus "$work/bench-os" --json "$@"
}

run nestor corpus fetch bench "$work/bench-os" --level -Os
run nestor train inlining-size-os --corpus "$work/bench-os" --out "$run" --seed "$seed" \
  --distil.build copies --distil.gain.tail 0.5 --distil.compiles 8 --distil.candidates 3 \
  --distil.cautions 0.35 0.5 0.7 --distil.trees.rounds 80 --distil.trees.coarse-rounds 40 \
  --distil.trees.leaves 15 --distil.trees.least-rows 30
# With a summary, the only call of a function is inlined up to callees of this size.
run python -m benchmarks.only_call make "$run/policy.safetensors" --bytes 1000 --code-size 128 \
  --out "$run/only-call.safetensors"
# And the compiler tries functions of a few calls that go away.
run python -m benchmarks.inlining_trials make "$run/only-call.safetensors" \
  --out src/nestor/problems/inlining_size_os/data/shipped-os.safetensors
evaluate --policy shipped-os --mode gc no-gc icf --smoke > "$run/own.json"
evaluate --policy shipped-os --summary --mode gc icf > "$run/summary.json"
evaluate --policy threshold:5 threshold:25 > "$run/others.json"
run python -m benchmarks.model_card shipped-os "$work/bench-os" "$run/own.json" \
  "$run/summary.json" "$run/others.json"
# What it does to runs, on programs with workloads.
run nestor corpus fetch speed "$work/speed"
run python -m benchmarks.relevel "$work/speed" "$work/speed-os" --level=-Os
run nestor workload measure --problem inlining-size-os --policy shipped-os \
  --corpus "$work/speed-os" --json > "$run/speed.json"
run python -m benchmarks.speed_policies "shipped-os=$run/speed.json" --table speed \
  --json benchmarks/results/policy_shipped-os.json
# What it adds to compiles, and to programs that nothing was chosen by.
run nestor corpus fetch tiny "$work/tiny-os" --level -Os
run python -m benchmarks.compile_cpu "$work/tiny-os" shipped-os --problem inlining-size-os
run nestor corpus fetch fresh "$work/fresh-os" --level -Os
run nestor evaluate --problem inlining-size-os --policy shipped-os --mode gc no-gc icf --smoke \
  --corpus "$work/fresh-os" --json > "$run/fresh.json"
run python -m benchmarks.evaluated "shipped-os=$run/own.json" \
  "shipped-os with a summary=$run/summary.json" "shipped-os, tier fresh=$run/fresh.json" \
  --json benchmarks/results/policy_shipped-os.json
run python -m benchmarks.tables
echo "The policy, benchmarks/results/policy_shipped-os.json and the pages made from it are new;"
echo "run the tests and commit them together."
