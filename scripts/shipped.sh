#!/bin/sh
# Make the shipped policy again from nothing: fetch the bench tier, train, evaluate, and write its
# model card. About two hours on two quiet cores; every step goes on where it was stopped. The
# policy that is in the package is replaced only when the new one is there.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
work=${1:-.nestor}
seed=${2:-0}
run=$work/shipped-$seed
run() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

run nestor corpus fetch bench "$work/bench"
run nestor corpus overlap "$work/bench"
# A budget of compiles, not of CPU minutes: it ends at the same update on every machine.
run nestor train inlining-size --corpus "$work/bench" --out "$run" --learner cma --seed "$seed" \
  --budget.compiles 10651
run cp "$run/policy.safetensors" src/nestor/policy/data/shipped.safetensors
nestor evaluate --policy shipped --mode gc no-gc icf --smoke \
  --corpus "$work/bench" --json > "$run/own.json"
nestor evaluate --policy distilled threshold:15 threshold:25 never mlgo2020 \
  --corpus "$work/bench" --json > "$run/others.json"
python -m benchmarks.model_card shipped "$work/bench" "$run/own.json" "$run/others.json" \
  > docs/studies/model-card-shipped.md
echo "The policy and docs/studies/model-card-shipped.md are new; run the tests and commit them together."
