#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/attach.sh BUILD cycles N | kills N
#
# Attaches to and detaches from a program that never rests (tests/targets/attach_busy, 8 threads), N times under each
# of four allocators; or kills the attaching process with SIGKILL at N random moments. Says whether the program lived,
# how often it was attached to, for how long its one thread stood still (of both, attach and detach), how many
# threads were looked at, and memory and mappings at the start, after ten cycles and at the end. Needs root.
set -u

build=$(cd "$1" && pwd)
heaptap=$build/heaptap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

memory() { grep -E '^Vm(Size|RSS)' "/proc/$1/status"; echo "mappings $(wc -l <"/proc/$1/maps")"; }

# quantiles WHAT: of the numbers on standard input
quantiles() {
  sort -n | awk -v what="$1" '{ a[NR] = $1 } END { print "  " what ": " NR " times, median " a[int(NR / 2) + 1] ", p99 " a[int(NR * 0.99)] ", worst " a[NR] }'
}

start() {
  LD_PRELOAD=$1 "$build/tests/targets/attach_busy" "$2" >said 2>&1 &
  target=$!
  until grep -q ready said; do sleep 0.1; done
}

stop() {
  kill -TERM $target
  wait $target
  echo "$1: the target ended with $?; $(tail -1 said)"
}

cycles() {
  local good=0 i
  : >log
  start "$1" 8
  memory $target >first
  for i in $(seq "$2"); do
    "$heaptap" record -P $target --duration 10ms -o p/ >>log 2>&1 && good=$((good + 1))
    kill -0 $target || break
    rm -rf p
    [ "$i" != 10 ] || memory $target >tenth
  done
  memory $target >last
  stop "${1:-glibc}"
  echo "  attached and detached $good of $2 times"
  grep -o 'still for [0-9.]*' log | cut -d ' ' -f 3 | quantiles 'stood still, ms'
  grep -o '([0-9]* looks' log | tr -d '(' | quantiles 'looks'
  paste first tenth last
}

kills() {
  local killed=0 force=0
  start '' 4
  for _ in $(seq "$1"); do
    "$heaptap" record -q -P $target --duration 1ms -o p/ >>log 2>&1 &
    sampler=$!
    sleep "0.$(printf %03d $((RANDOM % 1000)))"
    kill -KILL $sampler 2>/dev/null && killed=$((killed + 1))
    wait $sampler 2>/dev/null
    kill -0 $target || break
    if grep -q '/memfd:heaptap ' "/proc/$target/maps"; then
      force=$((force + 1))
      "$heaptap" detach $target >>log 2>&1 || tail -1 log
    fi
    rm -rf p
  done
  stop "killed $killed times, in force $force of them"
}

case $2 in
  cycles)
    for allocator in '' libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
      cycles "$allocator" "$3"
    done
    ;;
  kills) kills "$3" ;;
  *) sed -n 3,9p "$0" ;;
esac
