#!/bin/sh
# Make the shipped policy again from nothing: fetch the bench tier, search, distil, evaluate, and
# write its model card. About an hour and a half on two quiet cores; every step goes on where it was
# stopped. The policy that is in the package is replaced only at the end.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
work=${1:-.nestor}
seed=${2:-0}
run=$work/shipped-$seed
run() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

run nestor corpus fetch bench "$work/bench"
run nestor corpus overlap "$work/bench"
run nestor train inlining-size --corpus "$work/bench" --out "$run" --learner distil --seed "$seed"
run cp "$run/policy.safetensors" src/nestor/policy/data/shipped.safetensors
nestor evaluate --policy shipped threshold:15 threshold:25 never mlgo2020 --mode gc no-gc icf \
  --corpus "$work/bench" --json > "$run/plain.json"
nestor evaluate --policy shipped --mode gc no-gc icf --summary --smoke \
  --corpus "$work/bench" --json > "$run/told.json"
python -m benchmarks.model_card shipped "$work/bench" "$run/plain.json" "$run/told.json" \
  > docs/model-card.md
echo "The policy and docs/model-card.md are new; run the tests and commit them together."
