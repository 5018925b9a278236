#!/usr/bin/env bash
# Run every engine under each of compute-sanitizer's tools; the exit code says whether all is clean.
#   usage: benchmarks/sanitize.sh FOLDER
set -uo pipefail
out=$1
mkdir -p "$out"
code=0
for tool in memcheck racecheck synccheck initcheck; do
  compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
    python3 benchmarks/every_engine.py > "$out/$tool.txt" 2>&1 || code=$?
  echo "$tool: $(tail -n 1 "$out/$tool.txt")"
done
exit "$code"
