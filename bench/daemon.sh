#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/daemon.sh BUILD restarts [ROUNDS] [PROCESSES]   as root: the daemon is killed again and again while processes hold and
#                                                       allocate; what the next one says of each, and when it has all of them
# bench/daemon.sh BUILD crowd [SECONDS] [PROCESSES] [MIB] as root: many processes, 20 more each second that live for one; the daemon's
#                                                       CPU time, memory, descriptors, and its store of MIB, looked at each second
# bench/daemon.sh BUILD start [RUNS]                    what the library costs a program at its start: plain, offering, recorded
set -eu

build=$(cd "$1" && pwd)
self=$(realpath "$0")
what=$2
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin
cp "$build/tests/targets/daemon_steps" "$build/libheaptap.so" "$build/heaptap" bin/

start_daemon() {
  bin/heaptap daemon --config heaptap.conf --store store --socket "$folder/control" -v 2>>log &
  daemon=$!
}

restarts() {
  local rounds=$1 processes=$2 busy=4 before now wrong=0 unanswered=0 profile work
  printf '[service]\nprofile = no\n[service steps]\nmatch.exe = %s/bin/*\nprofile = yes\nperiod = 1\ninterval = 0\n' "$folder" >heaptap.conf
  start_daemon
  for i in $(seq "$processes"); do
    work='await end'
    [ "$i" -gt "$busy" ] || work='churn 1000000000'
    # shellcheck disable=SC2086
    LD_PRELOAD=$folder/bin/libheaptap.so bin/daemon_steps on hold 1000 1000 touch "held$i" $work &
  done
  while [ "$(find . -maxdepth 1 -name 'held*' | wc -l)" -lt "$processes" ]; do sleep 0.1; done
  for round in $(seq "$rounds"); do
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || :
    : >log
    before=$(date +%s%3N)
    start_daemon
    while [ "$(grep -c 'taken up again' log)" -lt "$processes" ]; do
      [ $(($(date +%s%3N) - before)) -lt 60000 ] || break
      sleep 0.02
    done
    now=$(date +%s%3N)
    bin/heaptap snapshot --all --socket "$folder/control" >paths || unanswered=$((unanswered + 1))
    for profile in $(cat paths); do
      "$build/heaptap" report --json --sort inuse "$profile" >rows.json
      /usr/bin/python3 "$(dirname "$self")/daemon_sums.py" "$profile" rows.json sums || wrong=$((wrong + 1))
    done
    echo "round $round: $(wc -l <paths) processes, all taken up after $((now - before)) ms, wrong so far $wrong, unanswered $unanswered"
  done
  /usr/bin/python3 "$(dirname "$self")/daemon_sums.py" sums
  kill -TERM "$daemon"
}

crowd() {
  local seconds=$1 processes=$2 mib=$3 until
  cc -g -O1 -o bin/crowd "$(dirname "$self")/programs/crowd.c"
  cp bin/crowd bin/passing
  cat >heaptap.conf <<CONF
[daemon]
disk = ${mib}M
free = 1%
[service]
profile = no
[service crowd]
match.exe = $folder/bin/crowd
profile = yes
interval = 60s
[service passing]
match.exe = $folder/bin/passing
profile = yes
period = 16K
interval = 0
CONF
  start_daemon
  for i in $(seq "$processes"); do LD_PRELOAD=$folder/bin/libheaptap.so bin/crowd 256 100000 & done
  while [ "$(bin/heaptap status --json --socket "$folder/control" 2>/dev/null | grep -o '"profiled": *true' | wc -l)" -lt "$processes" ]; do sleep 0.5; done
  echo "$processes processes are profiled"
  (
    until=$((SECONDS + seconds))
    while [ "$SECONDS" -lt "$until" ]; do
      for i in 1 2 3 4 5 6 7 8 9 10; do LD_PRELOAD=$folder/bin/libheaptap.so bin/passing 512 1 & done
      sleep 0.5
    done
    wait
  ) &
  /usr/bin/python3 "$(dirname "$self")/daemon_crowd.py" "$daemon" "$folder/store" $((mib * 1048576)) "$seconds" 60
  echo "started and taken: $(grep -c 'service passing' log)"
  bin/heaptap status --socket "$folder/control" | tail -n 25
  grep -vE '(profiled|taken up again), service' log | tail -n 20
  find store -name '*.pb.gz' | sed 's/.*\.\([a-z]*\)\.pb\.gz/\1/' | sort | uniq -c
  [ -z "${KEEP:-}" ] || cp -a store "$KEEP"
  kill -TERM "$daemon"
}

start() {
  local runs=$1 how begin
  for round in 1 2 3 4 5; do
    for how in plain offering recorded; do
      begin=$(date +%s%N)
      case $how in
      plain) for i in $(seq "$runs"); do /bin/true; done ;;
      offering) for i in $(seq "$runs"); do LD_PRELOAD=$folder/bin/libheaptap.so /bin/true; done ;;
      recorded) "$build/heaptap" record -q -o out/ bash -c "for i in \$(seq $runs); do /bin/true; done" ;;
      esac
      echo "$round $how $((($(date +%s%N) - begin) / runs / 1000)) us each"
    done
  done
  for how in '' "$folder/bin/libheaptap.so"; do
    LD_PRELOAD=$how sleep 5 &
    sleep 1
    echo "sleep${how:+, offering}: $(awk '/^(Rss|Private_Dirty|Shared_Dirty|Shared_Clean|Pss):/ {printf "%s %s ", $1, $2}' "/proc/$!/smaps_rollup") KiB"
    wait $!
  done
}

case $what in
restarts) restarts "${3:-20}" "${4:-20}" ;;
crowd) crowd "${3:-1800}" "${4:-200}" "${5:-16}" ;;
start) start "${3:-200}" ;;
*) sed -n '3,7p' "$0"; exit 2 ;;
esac
