#!/bin/sh
# Make the shipped policy again from nothing: fetch the bench tier, train, evaluate, and write the
# figures of its model card. About two hours on two quiet cores; training goes on where it was
# stopped. The policy in the package is replaced only when the new one is there.
set -eu
. "$(dirname "$0")/common.sh"
seed=${2:-0}
run=$work/shipped-$seed

run nestor corpus fetch bench "$work/bench"
run nestor corpus overlap "$work/bench"
# A budget of compiles, not of CPU minutes: it ends at the same update on every machine.
run nestor train inlining-size --corpus "$work/bench" --out "$run" --learner cma --seed "$seed" \
  --budget.compiles 10651
# What one module cannot know is bounded, by validation programs weighed as parts of larger ones.
run python -m benchmarks.growth_bound "$work/bench" "$run/policy.safetensors" \
  --own 5 --comdat 120 --several 0 \
  --out src/nestor/problems/inlining_size/data/shipped.safetensors
nestor evaluate --policy shipped --mode gc no-gc icf --smoke \
  --corpus "$work/bench" --json > "$run/own.json"
nestor evaluate --policy distilled threshold:15 threshold:25 never mlgo2020 \
  --corpus "$work/bench" --json > "$run/others.json"
run python -m benchmarks.model_card shipped "$work/bench" "$run/own.json" "$run/others.json"
run python -m benchmarks.tables
echo "The policy, benchmarks/results/policy_shipped.json and the pages made from it are new;"
echo "run the tests and commit them together."
