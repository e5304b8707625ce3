#!/bin/sh
# Make the policy shipped-speed again from nothing: fetch the speed tier, count a run of its training
# programs, learn what calls are worth, and judge the policy on the held-out programs in three ways
# to build them. Some hours on two quiet cores; what was made is kept. The policy in the package is
# replaced only when the new one is there.
set -eu
. "$(dirname "$0")/common.sh"
seed=${2:-0}
run=$work/shipped-speed-$seed
# The 15 held-out programs with the least bitcode; without the list, all.
programs="gperf elements lz4 lzip mawk tcc amalgamate_demo lua ctags zpaq pcre2grep duk pic eqn
  brotli"
judge() {
  run nestor workload measure --problem inlining-speed --policy shipped-speed --corpus "$1" \
    --program $programs --json > "$2"
}

run nestor corpus fetch speed "$work/speed"
run nestor corpus fetch speed "$work/speed-o3" --level -O3
run nestor corpus profile "$work/speed" "$work/speed-profiled"
run nestor train inlining-speed --corpus "$work/speed" --out "$run" --seed "$seed" \
  --learner profile --profile.counted "$work/speed-profiled"
cp "$run/policy.safetensors" src/nestor/problems/inlining_speed/data/shipped-speed.safetensors
judge "$work/speed" "$run/o2.json"
judge "$work/speed-o3" "$run/o3.json"
judge "$work/speed-profiled" "$run/profiled.json"
run python -m benchmarks.speed_policies "at -O2=$run/o2.json" "at -O3=$run/o3.json" \
  "at -O2 with a profile=$run/profiled.json" --card shipped-speed \
  --json benchmarks/results/inlining_speed.json
run python -m benchmarks.tables
echo "The policy, benchmarks/results/inlining_speed.json and the pages made from it are new;"
echo "run the tests and commit them together."
