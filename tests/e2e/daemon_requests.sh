# SPDX-License-Identifier: Apache-2.0
# What is asked of the daemon by its control socket: snapshots as files, profiles for heaptap serve, its list.
# timeout: 60

. "$top/tests/daemon_lib.sh"

test_snapshots_by_the_socket() {
  start_daemon
  carry on hold 100 1000 touch held await end &
  target=$!
  wait_for 20 test -e held
  for words in "$target" '--service steps' --all; do
    "$heaptap" snapshot --socket "$PWD/run/control" $words >out
    profile=$(only $(cat out))
    profile_check "$profile"
    reached_exactly "$profile" hold 'inuse_space 100000' 'inuse_objects 100'
  done
  equal 1 "$(status_of "$heaptap" snapshot --socket "$PWD/run/control" --service nobody)" 'status of an unknown service'
  touch end
  wait $target
  stop_daemon
}

# A process that has allocated nothing since the daemon knows it is profiled; a snapshot of it has nothing to say.
test_a_process_without_a_sample() {
  configure
  sed -i 's/^period = 1$/period = 32M/' heaptap.conf
  start_daemon
  carry await end &
  target=$!
  listed() { "$heaptap" status --socket "$PWD/run/control" --json $target | grep -q '"profiled":true'; }
  wait_for 20 listed
  for words in "$target" '--service steps' --all; do
    equal 1 "$(status_of "$heaptap" snapshot --socket "$PWD/run/control" $words)" "status of snapshot $words"
    matches '^heaptap: profiled, but no sample has been taken yet: nothing is written$' err
  done
  equal 1 "$(status_of "$heaptap" snapshot --socket "$PWD/run/control" --service nobody)" 'status of no service'
  matches 'profiles no such process' err
  if command -v curl >/dev/null; then
    cp "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
    "$heaptap" serve --listen 127.0.0.1:0 --socket "$PWD/run/control" 2>serve.err &
    serve=$!
    wait_for 20 grep -q '^heaptap: serving on http' serve.err
    url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' serve.err | head -1)
    equal 404 "$(curl -sS -o body -w '%{http_code}' "$url/pid/$target/debug/pprof/heap")"
    matches 'the process has taken no sample yet' body
    kill $serve
    wait $serve || :
  fi
  touch end
  wait $target
  stop_daemon
}

# What is in the store of a process that runs is that process', and what it has counted it keeps, when the daemon is
# killed and another takes it up; who asks for what is new is not told again what was before, and moments stay.
test_serve_knows_a_process_by_its_start() {
  command -v curl >/dev/null || skip 'no curl'
  start_daemon
  cp "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
  carry on hold 100 1000 drop 50 touch held await more hold 10 1000 touch held.more await end &
  target=$!
  wait_for 20 test -e held
  "$heaptap" snapshot --socket "$PWD/run/control" $target >out
  "$heaptap" serve --listen 127.0.0.1:0 --socket "$PWD/run/control" store 2>serve.err &
  serve=$!
  wait_for 20 grep -q '^heaptap: serving on http' serve.err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' serve.err | head -1)
  is_one() {
    curl -s "$url/api/v1/processes" | python3 -c 'import json, sys
p = json.load(sys.stdin)["processes"]
sys.exit(not (len(p) == 1 and p[0]["running"] and p[0]["profiles"] >= 1 and p[0]["service"] == "steps"))'
  }
  allocated() { curl -s "$url/metrics" | sed -n 's/^heaptap_alloc_bytes_total{service_name="steps"} //p'; }
  wait_for 20 is_one || fail "$(curl -s "$url/api/v1/processes")"
  before=$(allocated)
  delta() { curl -sS -o delta.pb.gz "$url/pid/$target/debug/pprof/delta_heap?client=one" && "$readers/oracle" delta.pb.gz >/dev/null; }
  delta # it was there before the server: 0
  curl -s "$url/api/v1/profiles" >profiles
  moment=$(grep -o "\"m-$target-[0-9]*\"" profiles | head -n 1 | tr -d '"')
  [ -n "$moment" ] || fail "$(cat profiles)"
  kill_daemon
  # For two looks there is no daemon.
  gone() { ! curl -s "$url/metrics" | grep -q 'heaptap_targets{service_name="steps"}'; }
  wait_for 20 gone
  start_daemon
  taken_up() { "$heaptap" status --socket "$PWD/run/control" --json $target | grep -q '"profiled":true'; }
  wait_for 20 taken_up
  wait_for 20 is_one
  sleep 1.1 # a look is a second old at most
  equal "$before" "$(allocated)" 'allocated'
  delta
  equal 0 "$(total_of delta.pb.gz alloc_space)" 'allocated since'
  reached_exactly delta.pb.gz hold 'alloc_space 0' 'inuse_space 50000'
  equal 200 "$(curl -s -o moment.pb.gz -w '%{http_code}' "$url/api/v1/profile?id=$moment")" 'the moment'
  touch more
  wait_for 20 test -e held.more
  sleep 1.1
  delta
  reached_exactly delta.pb.gz hold 'alloc_space 10000' 'inuse_space 60000'
  touch end
  wait $target
  kill "$serve"
  wait "$serve" || :
  stop_daemon
}

# Without a file: the heap now, and the CPU time of a second, by heaptap serve.
test_profiles_for_serve() {
  command -v curl >/dev/null || skip 'no curl'
  start_daemon
  cp "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
  carry on hold 100 1000 touch held spin end &
  target=$!
  wait_for 20 test -e held
  "$heaptap" serve --listen 127.0.0.1:0 --socket "$PWD/run/control" 2>serve.err &
  serve=$!
  wait_for 20 grep -q '^heaptap: serving on http' serve.err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' serve.err | head -1)
  fetch() {
    [ "$(curl -sS --max-time 40 -o "$1" -w '%{http_code}' "$url/pid/$target/debug/pprof/$2")" = 200 ] || { cat "$1" >&2; fail "$2"; }
  }
  fetch heap.pb.gz heap
  profile_check heap.pb.gz
  reached_exactly heap.pb.gz hold 'inuse_space 100000' 'inuse_objects 100'
  fetch cpu.pb.gz 'profile?seconds=1'
  "$heaptap" report cpu.pb.gz >report
  matches 'cpu' report
  matches spin report
  [ ! -e store/steps ] || fail 'a file was written'
  [ -z "$(ls -A run | grep cpu)" ] || fail 'a file of the CPU profile is left'
  touch end
  wait $target
  kill "$serve"
  wait "$serve" || :
  stop_daemon
}

# A child that writes a profile has every region mapped as the daemon has, and is none of the processes.
test_writers_are_not_listed() {
  start_daemon
  carry on hold 100 1000 touch held await end &
  target=$!
  wait_for 20 test -e held
  stopped() {
    kill -USR1 "$daemon"
    for try in $(seq 2000); do
      writer=
      read -r writer rest <"/proc/$daemon/task/$daemon/children" || :
      [ -n "$writer" ] || continue
      kill -STOP "$writer" 2>/dev/null && grep -q heaptap-writer "/proc/$writer/comm" 2>/dev/null && return
      kill -CONT "$writer" 2>/dev/null || :
    done
    false
  }
  wait_for 20 stopped
  sweeps 2
  "$heaptap" status --socket "$PWD/run/control" --json >status.json
  matches "\"pid\": *$target\b" status.json
  ! grep -qE "\"pid\": *$writer\b" status.json || fail 'the writer is listed as a process'
  kill -CONT "$writer"
  touch end
  wait $target
  stop_daemon
}
