# SPDX-License-Identifier: Apache-2.0
# Who asks the daemon: status, snapshot, doctor; how they find it, and who may.
# timeout: 60

. "$top/tests/daemon_lib.sh"

socket=$PWD/run/control

# is_profiled PID
is_profiled() {
  "$heaptap" status --socket "$socket" --json "$1" >seen 2>seen.err && grep -q '"profiled":true' seen
}

# Starts a daemon and a program that it profiles. Sets `program`, which holds 1,000 blocks of 1,000 bytes.
start_both() {
  start_daemon
  carry on hold 1000 1000 touch held await go &
  program=$!
  wait_for 20 test -e held
  wait_for 20 is_profiled $program
}

# status, its JSON and /metrics say the same of one that leaks and of one that does not.
test_status_says_what_grows() {
  local steps=() step
  start_daemon
  for step in $(seq 400); do
    steps+=(await "go$step" hold 100 1000)
  done
  carry on "${steps[@]}" await end &
  leaks=$!
  carry on hold 1000 1000 await end &
  steady=$!
  step=0
  says_grows() {
    touch go$((step += 1))
    sleep 0.2
    "$heaptap" status --socket "$socket" >table && grep -q '; grows since ' table
  }
  wait_for 20 is_profiled $leaks
  wait_for 60 says_grows
  matches "^steps +$leaks .* \\+[0-9.]+[MG] +[0-9]+ copy$" table
  matches '^  daemon_steps on; grows since [0-9:]{8}, by [0-9.]+ [MG]iB an hour \+- [0-9.]+ %$' table
  matches "^steps +$steady [^+?]* [0-9]+ copy$" table
  "$heaptap" status --socket "$socket" --json >json
  cp "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
  "$heaptap" serve --listen 127.0.0.1:0 --socket "$socket" 2>serve.err &
  server=$!
  wait_for 20 grep -q '^heaptap: serving on http' serve.err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' serve.err)
  # The server has the daemon's store by itself.
  "$heaptap" snapshot --socket "$socket" $leaks >path
  curl -sS "$url/metrics" >metrics
  from_the_store() { [ "$(curl -sS "$url/api/v1/profiles?pid=$leaks" | grep -o '"id":"f' | wc -l)" -ge 1 ]; }
  wait_for 20 from_the_store
  curl -sS "$url/api/v1/processes" >processes
  kill $server
  python3 - $leaks $steady <<'EOF'
import json, re, sys
leaks, steady = ({p["pid"]: p for p in json.load(open("json"))["processes"]}[int(pid)] for pid in sys.argv[1:])
assert leaks["growth"] == "grows" and leaks["growth_significant"] and leaks["growth_bytes_per_hour"] > 0, leaks
assert steady["growth"] == "steady" and not steady["growth_significant"], steady
assert steady["growth_bytes_per_hour"] is None and steady["growth_since"] is None, steady
rate = float(re.search(r'^heaptap_growth_bytes_per_second{service_name="steps"} (.*)$', open("metrics").read(), re.M)[1])
listed = {p["pid"]: p["growth_per_hour"] for p in json.load(open("processes"))["processes"]}
assert listed[int(sys.argv[2])] is None, listed
# Asked a moment later, another point may have come.
for other in rate * 3600, listed[int(sys.argv[1])]:
    assert 0.7 < other / leaks["growth_bytes_per_hour"] < 1.4, (other, leaks)
EOF
  touch end
  while [ "$step" -lt 400 ]; do
    touch go$((step += 1))
  done
  wait $leaks $steady
  stop_daemon
}

test_status_as_json() {
  start_both
  "$heaptap" status --socket "$socket" --json >json
  python3 - $daemon $program <<'EOF'
import json, sys
daemon, program = map(int, sys.argv[1:])
status = json.load(open("json"))
assert list(status) == ["daemon", "processes", "push"], list(status)
assert list(status["daemon"]) == ["pid", "since", "cpu_seconds", "rss_bytes", "disk_bytes"], status["daemon"]
assert status["daemon"]["pid"] == daemon
process = next(p for p in status["processes"] if p["pid"] == program)
assert list(process) == ["pid", "service", "exe", "comm", "name", "container_id", "since", "profiled", "reason", "inuse_bytes",
    "inuse_bytes_error", "inuse_objects", "rss_bytes", "growth", "growth_bytes", "growth_bytes_error", "growth_since",
    "growth_until", "growth_significant", "growth_bytes_per_hour", "growth_bytes_per_hour_error", "samples", "lost",
    "backend", "labels"], list(process)
assert process["profiled"] is True and process["service"] == "steps", process
assert process["exe"].endswith("/bin/daemon_steps") and process["comm"] == "daemon_steps", process
# At period 1 what is in use is exact.
assert process["inuse_bytes"] >= 1000000 and process["inuse_bytes_error"] == 0, process
assert process["rss_bytes"] > 0 and process["samples"] >= 1000 and process["backend"], process
for other in status["processes"]:
    assert other["profiled"] or other["reason"], other
EOF
  COLUMNS=80 "$heaptap" status --socket "$socket" >table
  matches "^steps +$program +[0-9:]{5} +[0-9.]+[KM] exact " table
  awk '/^service/ { table = 1 } table && length($0) > 80' table >wide
  [ ! -s wide ] || { cat wide >&2; fail 'wider than 80 columns'; }
  equal 0 "$(status_of "$heaptap" status --socket "$socket" steps)"
  equal 1 "$(status_of "$heaptap" status --socket "$socket" no-such-service)"
  matches '^heaptap: the daemon knows no process or service no-such-service$' err
}

test_snapshots_by_the_daemon() {
  start_both
  "$heaptap" snapshot --socket "$socket" $program >by-pid
  "$heaptap" snapshot --socket "$socket" --service steps >by-service
  HEAPTAP_SOCKET=$socket snapshot_all_here >by-all
  HEAPTAP_SOCKET=$socket "$heaptap" snapshot $program >by-search
  for list in by-pid by-service by-all by-search; do
    profile=$(grep "/store/steps/.*\.$program\.heap" $list) || fail "$list: $(cat $list)"
    profile_check "$profile"
    reached_exactly "$profile" hold 'inuse_space 1000000'
  done
  equal 1 "$(status_of "$heaptap" snapshot --socket "$socket" 1)"
  matches '^heaptap: the daemon profiles no such process$' err
  equal 1 "$(status_of "$heaptap" snapshot --socket "$socket" --service nobody)"
}

test_doctor_knows_the_daemon() {
  start_both
  status_of "$heaptap" doctor --socket "$socket" $program >status
  matches "^ok +daemon $daemon profiles [0-9]+ of [0-9]+ processes" out
  matches "^ok +the daemon profiles $program as service steps$" out
  status_of "$heaptap" doctor --socket "$socket" $$ >status
  matches "^note +the daemon knows no process $$: it does not carry the library$" out
  equal 0 "$(status_of "$heaptap" disable --now --socket "$socket")"
  is_off() { "$heaptap" status --socket "$socket" >off && grep -q '^  OFF ' off; }
  wait_for 5 is_off
  status_of "$heaptap" doctor --socket "$socket" >status
  matches '^note +the daemon samples nothing: ' out
  matches '^ +fix: heaptap enable --now$' out
  equal 0 "$(status_of "$heaptap" enable --now --socket "$socket")"
  wait_for 5 is_profiled $program
  status_of "$heaptap" doctor --socket run/nothing >status
  matches '^note +no daemon runs: there is no run/nothing$' out
}

test_where_no_daemon_is() {
  equal 1 "$(status_of "$heaptap" status --socket "$socket")"
  matches "^heaptap: no daemon runs: there is no $socket$" err
  export HEAPTAP_SOCKET=$PWD/x
  equal 1 "$(status_of "$heaptap" status)"
  matches "^heaptap: no daemon runs: there is no $PWD/x$" err
  equal 1 "$(status_of "$heaptap" snapshot --service x --socket "$socket")"
  start_daemon
  kill_daemon
  equal 1 "$(status_of "$heaptap" status --socket "$socket")"
  matches "^heaptap: no daemon runs: $socket is what one has left$" err
}

test_who_may_ask() {
  start_daemon
  chmod 755 .
  chmod 700 run
  equal 1 "$(status_of unprivileged "$heaptap" status --socket "$socket")"
  matches 'be root, or a member of the group heaptap$' err
  # Even when the way stands open.
  chmod 755 run
  chmod 777 run/control
  equal 1 "$(status_of unprivileged "$heaptap" status --socket "$socket")"
  matches 'may not be asked by you$' err
  equal 1 "$(status_of unprivileged "$heaptap" snapshot --all --socket "$socket")"
}
