#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/capture.sh [BUILD]: what the hook costs, in ns per malloc+free pair (best of 25 short runs, then best of 3).
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
cost=$build/tests/targets/capture_cost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -shared -fPIC -w -D_GNU_SOURCE -o "$work/forward.so" bench/capture_forward.c
cd "$work"

# run KIND ARGUMENT...
run() {
  local kind=$1
  shift
  case $kind in
    native) "$cost" "$@" ;;
    forward) LD_PRELOAD=$work/forward.so "$cost" "$@" ;;
    idle) LD_PRELOAD=$build/libheaptap.so "$cost" "$@" ;;
    *) "$build/heaptap" record -q -b "${kind%:*}" -p "${kind#*:}" -o "$work/x.pb.gz" "$cost" "$@" ;;
  esac
}

# line KINDS ARGUMENT...: kinds interleaved
line() {
  local kinds=$1 kind
  shift
  for _ in 1 2 3; do
    for kind in $kinds; do
      echo "$kind $(run "$kind" "$@")"
    done
  done | awk -v kinds="$kinds" -v what="$*" '
    !($1 in best) || $2 < best[$1] { best[$1] = $2 }
    END { printf "%-24s", what; n = split(kinds, k, " "); for (i = 1; i <= n; i++) printf "  %s %.2f", k[i], best[k[i]]; print "" }'
}

echo 'unsampled pair, small batch:  pair PAIRS THREADS LIVE'
for threads in 1 2 8; do
  line 'native forward idle copy:512K' pair 100000 $threads 0
done
for live in 5000 20000 100000; do
  line 'native forward copy:512K' pair 100000 1 $live
done
echo 'random places of 200,000 live blocks'
for live in 0 5000 100000; do
  line 'native forward idle copy:512K' random 200000 1 $live
done
echo 'sampled pair, period 1'
for kind in uprobe breakpoint copy; do
  line "$kind:1" sample 800 1
done
line copy:1 sample 800 2
