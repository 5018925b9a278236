#!/usr/bin/env bash
# Run every engine under each of compute-sanitizer's tools; the exit code says whether all is clean.
#   usage: benchmarks/sanitize.sh FOLDER
# racecheck of CUDA 13.0 ends by a segmentation fault of its own in graphs with a WHILE node, so
# graph_while is tried apart, with as few kernels in the node as can be.
set -uo pipefail
out=$1
mkdir -p "$out"
code=0

check() { # tool, name, options of every_engine.py
  local tool=$1 log=$out/$2.txt
  shift 2
  compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
    python3 benchmarks/every_engine.py "$@" > "$log" 2>&1 || code=$?
  echo "$log: $(grep -c ': right' "$log") right; $(tail -n 1 "$log")"
}

for tool in memcheck synccheck initcheck; do
  check "$tool" "$tool"
done
check racecheck racecheck --but graph_while
check racecheck racecheck-graph_while --only graph_while --levels-per-launch 2
exit "$code"
