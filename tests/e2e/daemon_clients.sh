# SPDX-License-Identifier: Apache-2.0
# Who asks the daemon: status, snapshot, doctor; how they find it, and who may.
# timeout: 60

# Starts a daemon with socket run/control and store `store`, and waits for it.
start_daemon() {
  "$heaptap" help >help
  grep -q '^  daemon ' help || skip 'this build has no daemon'
  mkdir -p run
  printf '[service]\ninterval = 1s\n%s\n' "${1:-}" >heaptap.conf
  "$heaptap" daemon --config "$PWD/heaptap.conf" --store "$PWD/store" --socket "$PWD/run/control" 2>daemon.log &
  daemon=$!
  wait_for 10 test -S run/control
}

# Starts a program that carries the library and lives until the test ends; waits until it is profiled. Sets `program`.
start_program() {
  LD_PRELOAD=$(library) sleep 1000 &
  program=$!
  wait_for 20 is_profiled $program
}

library() {
  echo "${heaptap%/*}/libheaptap.so"
}

# is_profiled PID
is_profiled() {
  "$heaptap" status --socket run/control --json "$1" >seen 2>seen.err && grep -q '"profiled":true' seen
}

test_status_as_json() {
  start_daemon
  start_program
  "$heaptap" status --socket run/control --json >json
  python3 - $daemon $program <<'EOF'
import json, sys
daemon, program = map(int, sys.argv[1:])
status = json.load(open("json"))
assert list(status) == ["daemon", "processes"], list(status)
assert list(status["daemon"]) == ["pid", "since", "cpu_seconds", "rss_bytes", "disk_bytes"], status["daemon"]
assert status["daemon"]["pid"] == daemon
process = next(p for p in status["processes"] if p["pid"] == program)
assert list(process) == ["pid", "service", "exe", "comm", "container_id", "since", "profiled", "reason", "inuse_bytes",
    "inuse_bytes_error", "inuse_objects", "rss_bytes", "growth_bytes_per_hour", "growth_significant", "samples", "lost",
    "backend", "labels"], list(process)
assert process["profiled"] is True and process["service"] == "sleep" and process["exe"].endswith("/sleep"), process
assert process["rss_bytes"] > 0 and process["labels"]["service_name"] == "sleep", process
for other in status["processes"]:
    assert other["profiled"] or other["reason"], other
EOF
  COLUMNS=80 "$heaptap" status --socket run/control >table
  matches "^sleep +$program +[0-9:]{5} " table
  awk '/^service/ { table = 1 } table && length($0) > 80' table >wide
  [ ! -s wide ] || { cat wide >&2; fail 'wider than 80 columns'; }
  equal 0 "$(status_of "$heaptap" status --socket run/control sleep)"
  equal 1 "$(status_of "$heaptap" status --socket run/control no-such-service)"
  matches '^heaptap: the daemon knows no process or service no-such-service$' err
}

test_snapshots_by_the_daemon() {
  start_daemon
  LD_PRELOAD=$(library) python3 -c 'import time; x = [bytearray(5000) for _ in range(10000)]; open("ready", "w"); time.sleep(1000)' &
  program=$!
  wait_for 20 test -e ready
  wait_for 20 is_profiled $program
  service=$("$heaptap" status --socket run/control --json $program | sed -n 's/.*"service":"\([^"]*\)".*/\1/p')
  "$heaptap" snapshot --socket run/control $program >by-pid
  "$heaptap" snapshot --socket run/control --service "$service" >by-service
  HEAPTAP_SOCKET=$PWD/run/control "$heaptap" snapshot --all >by-all
  HEAPTAP_SOCKET=$PWD/run/control "$heaptap" snapshot $program >by-search
  for list in by-pid by-service by-all by-search; do
    profile=$(grep "$PWD/store/$service/.*\.$program\.heap" $list) || fail "$list: $(cat $list)"
    profile_check "$profile"
  done
  equal 1 "$(status_of "$heaptap" snapshot --socket run/control 1)"
  matches '^heaptap: the daemon profiles no such process$' err
  equal 1 "$(status_of "$heaptap" snapshot --socket run/control --service nobody)"
}

test_doctor_knows_the_daemon() {
  start_daemon
  start_program
  "$heaptap" doctor --socket run/control $program >out 2>&1 || :
  matches "^ok +daemon $daemon profiles [0-9]+ of [0-9]+ processes" out
  matches "^ok +the daemon profiles $program as service sleep$" out
  "$heaptap" doctor --socket run/control $$ >out 2>&1 || :
  matches "^note +the daemon (knows no process $$: it does not carry the library|does not profile $$)" out
  "$heaptap" doctor --socket run/nothing >out 2>&1 || :
  matches '^note +no daemon runs: there is no run/nothing$' out
}

test_where_no_daemon_is() {
  equal 1 "$(status_of "$heaptap" status --socket run/control)"
  matches '^heaptap: no daemon runs: there is no run/control$' err
  equal 1 "$(HEAPTAP_SOCKET=$PWD/x status_of "$heaptap" status)"
  matches "^heaptap: no daemon runs: there is no $PWD/x$" err
  equal 1 "$(status_of "$heaptap" snapshot --service x --socket run/control)"
  start_daemon
  kill -9 $daemon
  wait $daemon || :
  equal 1 "$(status_of "$heaptap" status --socket run/control)"
  matches '^heaptap: no daemon runs: run/control is what one has left$' err
}

test_who_may_ask() {
  need_root
  stage leaky
  start_daemon
  chmod 755 run
  equal 1 "$(status_of unprivileged "$heaptap" status --socket "$PWD/run/control")"
  matches 'be root, or a member of the group heaptap$' err
  # Even when the way stands open.
  chmod 777 run/control
  equal 1 "$(status_of unprivileged "$heaptap" status --socket "$PWD/run/control")"
  matches 'may not be asked by you$' err
}
