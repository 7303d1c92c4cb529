# SPDX-License-Identifier: Apache-2.0
# `heaptap record --push`.

. "$top/tests/push.sh"

# Snapshots and the exit of each process, while it runs and at its end; COMMAND's status and its output stay.
test_record() {
  server
  equal 7 "$(status_of "$heaptap" record -q -b copy -p 1 -o 'p.%e.%n.pb.gz' --push "pyroscope+http://127.0.0.1:$port" \
    --label env=ci sh -c "$targets/snapshot_api hold 1000 snap a hold 500 snap b; exit 7")" status
  equal 2 "$(grep -c '^snapshot 1$' out)" 'lines of COMMAND'
  rm -f p.*.peak.pb.gz
  equal "$(ls p.*.pb.gz | wc -l)" "$(requests)" 'requests'
  equal "$(sums alloc_space p.*.exit.pb.gz)" "$(sums alloc_space server/*.pb.gz)" 'allocated'
  equal "$(sums inuse_space p.*.pb.gz)" "$(sums inuse_space server/*.pb.gz)" 'in use'
  equal ci "$(said 0001 'r["labels"]["env"]')" label
  equal 0 "$(find "$spool" -maxdepth 2 -name '*.pb.gz' | wc -l)" 'profiles in the spool'
}

# The server is away: the end waits ten seconds, and says where the rest is; the next session sends it.
test_record_away() {
  local began
  server
  kill $server_pid
  wait $server_pid || :
  began=$SECONDS
  equal 0 "$(status_of "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" \
    "$targets/leaky" 100 64)" status
  [ $((SECONDS - began)) -ge 9 ] || fail "waited $((SECONDS - began)) s only"
  matches '^heaptap: 1 profile \([0-9]+ bytes\) could not be sent yet, and waits in .*/push/record-pyroscope-127.0.0.1-[0-9]+; the next' err
  spooled_is "record-pyroscope-127.0.0.1-$port" 1 || fail 'nothing waits'
  server server "$port"
  record -q -p 4K -o b.pb.gz --push "pyroscope+http://127.0.0.1:$port" "$targets/leaky" 100 64
  equal 2 "$(requests)" requests
  # Nobody waits for a server if Ctrl-C comes a second time: see signals.sh; and a URL that is wrong starts nothing.
  equal 2 "$(status_of "$heaptap" record --push nowhere touch made)" status
  [ ! -e made ] || fail 'COMMAND was started'
}

# Two sessions send to one server: what the second leaves in their spool, the first one sends.
test_record_two() {
  server
  mkfifo gate
  "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" sh -c 'echo >ready; read line <gate' &
  first=$!
  trap 'kill $first $server_pid 2>/dev/null || :' EXIT
  wait_for 20 test -e ready
  holds_lock() { [ -e "$spool/record-pyroscope-127.0.0.1-$port/lock" ]; }
  wait_for 20 holds_lock
  equal 0 "$(status_of "$heaptap" record -q -p 4K -o b.pb.gz --push "pyroscope+http://127.0.0.1:$port" \
    "$targets/leaky" 100 64)" status
  equal 0 "$(grep -c 'could not be sent' err)" 'profiles left'
  equal 1 "$(requests)" requests
  echo >gate
  wait $first
}

# numbered: how many spools of sessions with options there are
numbered() {
  find "$spool" -mindepth 1 -maxdepth 1 -name "record-pyroscope-127.0.0.1-$port-????????????????" | wc -l
}

# Two sessions send to one server for two tenants: each its own. What waits waits for equal options; a spool with nothing
# in it, which may never be used again, is soon removed.
test_record_tenants() {
  server
  mkfifo gate
  numbered_is() { [ "$(numbered)" = "$1" ]; }
  "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" --tenant one --label env=prod \
    sh -c 'echo >ready; read line <gate' &
  first=$!
  trap 'kill $first $server_pid 2>/dev/null || :' EXIT
  wait_for 20 test -e ready
  wait_for 20 numbered_is 1
  record -q -p 4K -o b.pb.gz --push "pyroscope+http://127.0.0.1:$port" --tenant two --label env=test "$targets/leaky" 100 64
  equal 'two test' "$(said 0001 'r["headers"]["x-scope-orgid"] + " " + r["labels"]["env"]')" 'of the second session'
  wait_for 20 numbered_is 1
  echo >gate
  wait $first
  equal 'one prod' "$(said 0002 'r["headers"]["x-scope-orgid"] + " " + r["labels"]["env"]')" 'of the first session'
  equal 2 "$(requests)" requests
  wait_for 20 numbered_is 0
  kill $server_pid
  wait $server_pid || :
  equal 0 "$(status_of "$heaptap" record -q -p 4K -o c.pb.gz --push "pyroscope+http://127.0.0.1:$port" --tenant one \
    "$targets/leaky" 100 64)" status
  matches ' waits in .*/push/record-pyroscope-127.0.0.1-[0-9]+-[0-9a-f]{16}; the next .* with the same options sends it$' err
  server server "$port"
  record -q -p 4K -o d.pb.gz --push "pyroscope+http://127.0.0.1:$port" "$targets/leaky" 100 64
  equal 3 "$(requests)" 'requests after a session for nobody'
  record -q -p 4K -o e.pb.gz --push "pyroscope+http://127.0.0.1:$port" --tenant one "$targets/leaky" 100 64
  equal 5 "$(requests)" requests
  wait_for 20 numbered_is 0
}

# Who stops a service, or a terminal, signals all its processes: what the last profile says is sent all the same. One that
# is killed is missed at once, and by each profile that it is not told of.
test_record_stopped() {
  local pusher signal
  server
  holds_lock() { [ -e "$spool/record-pyroscope-127.0.0.1-$port/lock" ]; }
  for signal in TERM KILL; do
    mkfifo gate
    "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" \
      sh -c 'echo >ready; read line <gate' 2>err &
    front=$!
    trap 'kill $front $server_pid 2>/dev/null || :' EXIT
    wait_for 20 test -e ready
    # From then on it takes no notice of signals.
    wait_for 20 holds_lock
    pusher=$(child_of "$front" heaptap-push)
    [ $signal = KILL ] || kill -HUP "$pusher"
    [ $signal = KILL ] || kill -INT "$pusher"
    kill -$signal "$pusher"
    [ $signal = TERM ] || wait_for 20 grep -q 'heaptap-push ended before its time' err
    kill "$front"
    wait "$front" || equal 143 $? status
    "$heaptap" check a.pb.gz || fail 'no profile'
    rm -r gate ready "$spool"
  done
  equal 1 "$(requests)" requests
  sent_check server/0001-0.pb.gz
  matches '^heaptap: .*a.pb.gz is not sent: heaptap-push has ended$' err
}
