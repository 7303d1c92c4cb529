# SPDX-License-Identifier: Apache-2.0
# From the daemon to a server: its store is followed, its labels arrive, and what it allocates is counted once, also over
# a restart; what was sent is in `heaptap status` and in /metrics.
# timeout: 60

. "$top/tests/daemon_lib.sh"
. "$top/tests/push.sh"

# follow_store: the daemon's own configuration is all that the service is given
follow_store() {
  "$heaptap" push --follow --config heaptap.conf 2>>follow.err &
  follow_pid=$!
  trap 'kill $follow_pid $server_pid ${daemon:-} 2>/dev/null || :' EXIT
}

stage_all() {
  stage daemon_steps daemon_offer
  cp "$HEAPTAP_PROGRAMS/heaptap-push" "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
}

# total NUMBER TYPE: of the profile in a request
total() {
  total_of "server/$1-0.pb.gz" "$2"
}

test_labels_and_sums() {
  server
  stage_all
  configure 'label.team = storage crew' '[daemon]' "store = $PWD/store" '[push one]' \
    "url = pyroscope+http://127.0.0.1:$port" 'label.env = ci'
  start_daemon
  follow_store
  carry on hold 1000 1000 touch held await go hold 200 1000 touch more await end drop 100 &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  first=$profile
  wait_for 20 counted one sent 1
  equal 'steps storage crew ci' "$(said 0001 'r["labels"]["service_name"] + " " + r["labels"]["team"] + " " + r["labels"]["env"]')"
  equal '' "$(said 0001 'r["labels"].get("pid", "")')" 'label pid'
  said 0001 'r["labels"]["__session_id__"]' >session
  equal "$(total_of "$first" alloc_space)" "$(total 0001 alloc_space)" 'allocated at first'
  sent_check server/0001-0.pb.gz
  # The daemon is killed, and the stacks of what was allocated are lost with it: it is not allocated anew for that.
  kill_daemon
  touch go
  wait_for 20 test -e more
  start_daemon
  wait_for 20 grep -q "pid $target .*taken up again" daemon.log
  snapshot_all "$target"
  second=$profile
  wait_for 20 counted one sent 2
  touch end
  wait "$target"
  wait_for 20 profile_of "$target" exit
  wait_for 20 counted one sent 3
  equal "$(total_of "$profile" alloc_space)" "$(sums alloc_space server/000?-0.pb.gz)" 'allocated, of all that came'
  equal "$(sums inuse_space "$first" "$second" "$profile")" "$(sums inuse_space server/000?-0.pb.gz)" 'in use'
  equal 1 "$(for i in 1 2 3; do said 000$i 'r["labels"]["__session_id__"]'; done | sort -u | wc -l)" 'sessions'
  follow_end
  stop_daemon
}

# json FILE EXPRESSION
json() {
  /usr/bin/python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# metric NAME VALUE
metric() {
  curl -sf "http://127.0.0.1:$web/metrics" >metrics && grep -qxF "$1 $2" metrics
}

test_seen_by_status_and_metrics() {
  server
  stage_all
  configure '[daemon]' "store = $PWD/store" '[push one]' "url = pyroscope+http://127.0.0.1:$port"
  start_daemon
  follow_store
  carry on hold 100 1000 touch held await go &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  wait_for 20 counted one sent 1
  plan '400 no'
  snapshot_all "$target"
  wait_for 20 counted one rejected 1
  plan '401 expired'
  snapshot_all "$target"
  denied() { grep -q '^denied [1-9]' "$spool/one/counters"; }
  wait_for 20 denied
  kill $server_pid
  wait $server_pid || :
  spooled_is one 1 || fail 'it does not wait'
  "$heaptap" status --socket "$PWD/run/control" --json >status.json
  equal 'one 1 1 0' "$(json status.json '"{name} {sent} {rejected} {dropped}".format(**r["push"][0])')" 'status'
  equal "$(stat -c %s "$spool"/one/*.pb.gz)" "$(json status.json 'r["push"][0]["spool_bytes"]')" 'bytes that wait'
  json status.json '0 <= r["push"][0]["oldest_seconds"] < 3600' >age
  matches True age
  "$heaptap" status --socket "$PWD/run/control" >status.txt
  matches '^  push    one: 1 sent, 1 rejected; the server refuses the token; 1 wait \([0-9.]+ (KiB|B)\), the oldest for ' status.txt
  "$heaptap" serve --listen 127.0.0.1:0 --socket "$PWD/run/control" 2>serve.err &
  serve_pid=$!
  trap 'kill $follow_pid $serve_pid $daemon 2>/dev/null || :' EXIT
  wait_for 20 grep -q '^heaptap: serving on http' serve.err
  web=$(sed -n 's,^heaptap: serving on http://127.0.0.1:\([0-9]*\)/$,\1,p' serve.err)
  wait_for 20 metric 'heaptap_push_sent_total{target="one"}' 1
  metric 'heaptap_push_rejected_total{target="one"}' 1 || fail "$(grep push metrics)"
  metric 'heaptap_push_dropped_total{target="one"}' 0 || fail "$(grep push metrics)"
  metric 'heaptap_push_denied{target="one"}' "$(json status.json 'r["push"][0]["denied"]')" || fail "$(grep push metrics)"
  metric 'heaptap_spool_profiles{target="one"}' 1 || fail "$(grep spool metrics)"
  metric 'heaptap_spool_bytes{target="one"}' "$(stat -c %s "$spool"/one/*.pb.gz)" || fail "$(grep spool metrics)"
  # Of the daemon's processes it is known what they have allocated.
  metric 'heaptap_inuse_bytes{service_name="steps"}' 100000 || fail "$(grep inuse metrics)"
  at_least 100000 "$(sed -n 's/^heaptap_alloc_bytes_total{service_name="steps"} //p' metrics)" 'allocated'
  touch go
  wait "$target"
  follow_end
  kill $serve_pid
  wait $serve_pid || :
  stop_daemon
}
