#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/attach.sh BUILD SECTION [N [WHAT]]: what attaching does to a process. Needs root, and `make all bench-bin`.
#
#   cycles N [ALLOCATOR...]   attaches to and detaches from a program whose 8 threads spin in malloc, realloc and free,
#                             while one more spins in dlopen and dlclose and one in fork (tests/targets/attach_busy),
#                             N times under each allocator (glibc, jemalloc, tcmalloc, mimalloc). Crashes, hangs, for how
#                             long the one thread stood still, how many threads were looked at, what a cycle took, and
#                             memory and mappings over the cycles, beside a target that nobody attaches to. By
#                             bench/attach_cycles.c: one sampler, and no profile.
#   recordings N [ALLOCATOR...]   the same, each cycle a whole `heaptap record -P --duration 10ms`
#                             ATTACH_CYCLES=FOLDER keeps a line per cycle there; OPTIONS are record's; TARGET_BY
#                             starts the target ("nice -n 14": so that others have the machine too).
#   report FOLDER             that of such a folder, also while the cycles go on
#   kills N attach|detach     SIGKILL of the attaching processes at a random time (the first, all), and of the one
#                             that holds the thread at a random ptrace call, until N of them were not done yet
#   calls [PATTERN]           calls in progress at the stop: what the program saw, with and without
#   seen                      of processes that rest: what is different after an attach and a detach
#   truth [N]                 -p 1, by function; and N (5) runs with the default period, in standard errors
#   refusals                  each of them as printed, with `heaptap doctor`
#   pair [N]                  an unsampled malloc and free, N (15) rounds of all kinds in turn
#
# Services under load: bench/attach_services.py.
set -u

usage() { sed -n '3,/^# Services/p' "$0" | cut -c 3-; exit 2; }
[ $# -ge 2 ] || usage
cd "$(dirname "$0")/.." || exit 1
top=$PWD
build=$(cd "$1" && pwd)
section=$2
shift 2
heaptap=$build/heaptap
targets=$build/tests/targets
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work" || exit 1

# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.02
  done
}

# quantiles WHAT: of the numbers on standard input
quantiles() {
  sort -n | awk -v what="$1" '
    { a[NR] = $1 }
    END { if (NR) printf "  %s: %d times, median %s, p99 %s, worst %s\n", what, NR, a[int((NR + 1) / 2)], a[int(NR * 0.99 + 0.5)], a[NR] }'
}

says() { grep -qs "$1" said; }
in_force() { grep -qs 'attached; paused one thread' log; }

# start ALLOCATOR THREADS [spin]: sets target
start() {
  rm -f said
  # shellcheck disable=SC2086
  LD_PRELOAD=$1 ${TARGET_BY:-} "$targets/attach_busy" "${@:2}" >said 2>said.err &
  target=$!
  until_true 60 says ready || { echo 'the target does not begin'; exit 1; }
}

# stop: its status and what it says; 124 and killed if its threads do not come to their end
stop() {
  kill -TERM $target
  ended() { ! kill -0 $target 2>/dev/null || grep -q '^State:.*Z' /proc/$target/status; }
  until_true 120 ended || { kill -KILL $target; wait $target 2>/dev/null; verdict='hangs'; return; }
  wait $target
  verdict="status $?, $(tail -n 1 said)"
}

. "$top/bench/attach_stress.sh"
. "$top/bench/attach_effects.sh"
. "$top/bench/attach_refusals.sh"

case $section in
  cycles | recordings)
    folder=${ATTACH_CYCLES:-$work/cycles}
    mkdir -p "$folder"
    count=${1:-1000}
    shift
    for allocator in "${@:-glibc jemalloc tcmalloc mimalloc}"; do
      for name in $allocator; do
        case $name in
          glibc) library= ;;
          jemalloc) library=libjemalloc.so.2 ;;
          tcmalloc) library=libtcmalloc_minimal.so.4 ;;
          mimalloc) library=libmimalloc.so.2 ;;
          *) usage ;;
        esac
        cycles $section $name "$library" "$count"
        control "$library" "${CONTROL_SECONDS:-60}" $name
      done
    done
    report "$folder"
    ;;
  report) report "$(cd "$OLDPWD" && cd "$1" && pwd)" ;;
  kills) kills "${1:-300}" "${2:-attach}" ;;
  calls | seen | truth | refusals | pair) $section "$@" ;;
  *) usage ;;
esac
