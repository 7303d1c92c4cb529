#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/capture.sh [BUILD] [PATTERN]: what the hook costs; sections whose name matches. Runs of all kinds take turns; printed
# are the median of ROUNDS (5) runs and the lowest and highest of them, each itself the best of 25 short loops where it is
# ns per malloc+free pair.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
pattern=${2:-.}
cost=$build/tests/targets/capture_cost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -shared -fPIC -w -D_GNU_SOURCE -o "$work/forward.so" bench/capture_forward.c
cd "$work"

# run KIND COMMAND...: kinds are native, forward, idle and BACKEND:PERIOD[:STACK BYTES[:OPTION]]
run() {
  local kind=$1 backend period stack option
  shift
  case $kind in
    native) "$@" ;;
    forward) LD_PRELOAD=$work/forward.so "$@" ;;
    idle) LD_PRELOAD=$build/libheaptap.so "$@" ;;
    *)
      IFS=: read -r backend period stack option <<<"$kind"
      "$build/heaptap" record -q -b "$backend" -p "$period" -s "${stack:-32K}" ${option:+"$option"} -o "$work/x.pb.gz" "$@"
      ;;
  esac
}

# line KINDS FIELD COMMAND...: FIELD of the last line that the command prints
line() {
  local kinds=$1 field=$2 kind
  shift 2
  for _ in $(seq "${ROUNDS:-5}"); do
    for kind in $kinds; do
      echo "$kind $(run "$kind" "$@" | tail -n 1 | cut -d ' ' -f "$field")"
    done
  done | sort -k1,1 -k2,2g | awk -v kinds="$kinds" -v what="$(basename "$1") ${*:2}" '
    { v[$1, ++n[$1]] = $2 }
    END {
      printf "%s\n", what
      k = split(kinds, kind, " ")
      for (i = 1; i <= k; i++) {
        c = n[kind[i]]
        printf "    %-22s %9.2f  [%.2f..%.2f]\n", kind[i], v[kind[i], int((c + 1) / 2)], v[kind[i], 1], v[kind[i], c]
      }
    }'
}

section() {
  [[ $1 =~ $pattern ]] || return 1
  echo "$1: $2 (load $(cut -d ' ' -f 1 /proc/loadavg))"
}

if section pair 'unsampled pair, small batch; PAIRS THREADS LIVE'; then
  for threads in 1 2 8; do
    line 'native forward idle copy:512K' 1 "$cost" pair 100000 $threads 0
  done
  for live in 1000 20000 100000 1000000; do
    line 'native forward copy:512K' 1 "$cost" pair 100000 1 $live
  done
fi
if section random 'unsampled pair, random places of 200,000 live blocks'; then
  for live in 0 1000 100000 1000000; do
    line 'native forward idle copy:512K' 1 "$cost" random 200000 1 $live
  done
fi
if section churn 'unsampled pair after so many samples were taken and freed'; then
  for churn in 1 1000000; do
    line 'native forward copy:64' 2 "$build/bench/loops" batch 1 4000000 churn=$churn pause
  done
fi
if section sample 'every pair a sample (period 1), by backend and dump'; then
  for kind in uprobe breakpoint; do
    line "$kind:1:8K $kind:1:16K $kind:1:32K $kind:1:64K" 1 "$cost" sample 800 1 0 trigger
  done
  line copy:1 1 "$cost" sample 800 1
  line copy:1 1 "$cost" sample 800 2
fi
if section operators 'unsampled new+delete: libstdc++, then tcmalloc with operators of its own'; then
  line 'native idle copy:512K' 1 "$build/tests/targets/operators" /dev/null 1 time
  tcmalloc=$(ldconfig -p | awk '$1 == "libtcmalloc_minimal.so.4" { print $NF; exit }')
  if [ -n "$tcmalloc" ]; then
    g++ -std=c++17 -O2 -fno-builtin -fsized-deallocation -w -o operators "$OLDPWD/tests/targets/operators.cc" \
      -Wl,--no-as-needed "$tcmalloc"
    line 'native idle copy:512K' 1 "$work/operators" /dev/null 1 time
  fi
fi
if section mmap 'mmap+munmap of a page; then with so many recorded mappings live'; then
  line 'native idle copy:512K copy:512K::--mmap' 1 "$build/tests/targets/mappings" /dev/null time 0
  line 'copy:1::--mmap' 1 "$build/tests/targets/mappings" /dev/null time 1000
  line 'copy:1::--mmap' 1 "$build/tests/targets/mappings" /dev/null time 10000
fi
if section memory 'resident KiB of the program, 256 MiB in blocks of 4 KiB'; then
  line 'native forward copy:512K copy:64K copy:4K uprobe:4K' 1 "$cost" memory 65536
fi
