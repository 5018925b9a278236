#!/usr/bin/env bash
# Record the comparison of every engine on the suite's graphs, as kept under benchmarks/results/.
#   usage: benchmarks/record.sh FOLDER [REPEAT]
# Graph files are looked for in PERSISTENT_BFS_GRAPHS; one that is not there is passed over.
set -euo pipefail
out=$1
repeat=${2:-30}
graphs=${PERSISTENT_BFS_GRAPHS:-../shared/graphs}
mkdir -p "$out"

record() { # name, graph, further options
  local name=$1 graph=$2
  shift 2
  if [[ $graph == */* && ! -f $graph ]]; then
    echo "passed over: no $graph" >&2
    return
  fi
  python3 -m persistent_bfs compare "$graph" --device cuda --repeat "$repeat" \
    --output "$out/$name.json" "$@"
}

record path-10000 path:10000
record grid-512x512 grid:512x512
record NY "$graphs/road-USA-NY.gr.xz"
record luxembourg "$graphs/road-luxembourg-osm.mtx.gz"
record maze512 "$graphs/maze512-1-0.txt.gz"
record FLA "$graphs/road-USA-FLA.gr.xz"
record words-kjv words-kjv --source faithless
record kron-20 kron:20 --source max-degree

# The neighbour walk of single levels alone.
for spec in "words-kjv --source faithless --levels 2,3,4" "kron:20 --source max-degree"; do
  name=${spec%% *}
  # shellcheck disable=SC2086
  python3 -m persistent_bfs expand $spec --device cuda --advances all \
    --output "$out/expand-${name/:/-}.json"
done
