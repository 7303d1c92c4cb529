# SPDX-License-Identifier: Apache-2.0
# Root's `heaptap serve`, and samplers of another user that lie: a socket's owner speaks of his own processes only.
# timeout: 90

. "$HEAPTAP_TOP/tests/serve.sh"

stranger=4243
as_stranger=(setpriv --reuid $stranger --regid $stranger --clear-groups)

# A machine of the test's own: nobody else's processes and sockets, and a /proc that shows a user his own processes alone.
on_a_machine() {
  need_root
  unshare -mpf --mount-proc mount -o remount,hidepid=2 /proc 2>/dev/null || skip 'no namespaces here, or no hidepid'
  unshare -mpf --kill-child --mount-proc bash -c '
    set -eu
    mount -o remount,hidepid=2 /proc
    mount -t tmpfs -o mode=755 none /run
    here=$PWD
    exec 5<"$PWD" 6<"$HEAPTAP_TOP" 7<"$HEAPTAP_PROGRAMS" 8<"$TMPDIR"
    mount -t tmpfs -o mode=1777 none /tmp
    set -- "$1" 5 "$PWD" 6 "$HEAPTAP_TOP" 7 "$HEAPTAP_PROGRAMS" 8 "$TMPDIR"
    while [ $# -gt 1 ]; do # what was below /tmp is there again
      [ -e "$3" ] || { mkdir -p "$3"; mount --bind "/proc/self/fd/$2" "$3"; }
      first=$1
      shift 3
      set -- "$first" "$@"
    done
    cd "$here"
    exec 5<&- 6<&- 7<&- 8<&-
    . "$HEAPTAP_TOP/tests/lib.sh"
    . "$HEAPTAP_TOP/tests/e2e/serve_strangers.sh"
    user=()
    "$1"' sh "$1" || { [ $? != 77 ] || exit 77; fail "$1"; }
}

# fake NAME PROFILE ROW...: a sampler of the stranger's, which lists these rows ("pid=1 service=a") and gives that file
# for any process
fake() {
  local folder=/run/user/$stranger/heaptap name=$1
  [ -d $folder ] || { mkdir -p /run/user && install -d -m 700 -o $stranger /run/user/$stranger && "${as_stranger[@]}" mkdir -m 700 $folder; }
  [ -e fake.py ] || cat >fake.py <<'PYTHON'
import array, fcntl, os, socket, sys
def sealed(data):
    fd = os.memfd_create("fake", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, 15)
    return fd
def rows():
    text = b"daemon\0pid=1\0since=1\0cpu_ns=9000000000000000000\0rss_bytes=9000000000000\0disk_bytes=9000000000000\0"
    text += b"store=" + os.getcwd().encode() + b"/secrets\0store_depth=4\0\0"
    for row in sys.argv[3:]:
        text += b"process\0profiled=1\0start=1700000000000000000\0inuse_bytes=1e15\0inuse_bytes_error=1\0rss_bytes=1\0"
        text += "".join(word + "\0" for word in row.split()).encode() + b"\0"
    return text
profile = open(sys.argv[2], "rb").read()
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1])
server.listen(64)
while True:
    client, _ = server.accept()
    asked = client.recv(200).decode().split()
    data = rows() if asked == ["list"] else profile
    fd = sealed(data)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    what, how = open("how").read().split() if os.path.exists("how") else ("", "")
    right = "list" if asked == ["list"] else "heap"
    if what == right:
        right = how
    try:
        if right == "asked":  # without end
            while True:
                client.send(b"asked 1")
        elif right == "failed":
            client.send(b"failed 1 \x1b]0;evil\x07 and\n\xc2\x9b31m")
        elif right == "written":
            client.send(b"written 1 /etc/shadow")
        elif right == "profile":
            client.sendmsg([f"profile 1 {len(data)}".encode()], rights)
        elif right == "list":
            client.sendmsg([f"list {len(data)}".encode()], rights)
        else:
            client.send(b"asked 1")
            client.sendmsg([f"profile {asked[-1]} {len(data)}".encode()], rights)
    except OSError:
        pass
    os.close(fd)
    client.close()
PYTHON
  [ -e "$2" ] || : >"$2"
  shift
  "${as_stranger[@]}" /usr/bin/python3 fake.py $folder/$name.sock "$@" &
  children+=($!)
  wait_for 20 test -S $folder/$name.sock
}

# lists PID: does the server list it?
lists() {
  curl -s "$url/api/v1/processes" | grep -q "\"pid\":$1[,}]"
}

inside_lies() {
  local roots his secret acting gone
  program a -p 1 -b copy
  tell a 'hold 300'
  roots=$(cat a.pid)
  "${as_stranger[@]}" sleep 600 &
  his=$!
  bash -c 'exec -a "rootd --password=hunter2" sleep 600' &
  secret=$!
  # A service of root's that acts for him now, and for somebody else later.
  /usr/bin/python3 -c 'import os, time; os.setresuid(0, 4243, 0); open("acts", "w"); time.sleep(600)' --password=hunter2 &
  acting=$!
  children+=($his $secret $acting)
  chmod 777 .
  wait_for 20 test -e acts
  ! "${as_stranger[@]}" cat /proc/$acting/cmdline 2>/dev/null || fail 'it can be read'
  true &
  gone=$!
  wait $gone
  ! "${as_stranger[@]}" cat /proc/$secret/cmdline 2>/dev/null || fail 'hidepid does nothing'
  "$heaptap" record -q -p 1 -o secrets/x.pb.gz "$HEAPTAP_BUILD/tests/targets/leaky" 10 64
  serve
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 1
  curl -s "$url/metrics" | grep -E '^heaptap_(inuse_bytes|samplers|sampler_resident|disk)' | sed 's/ .*e+.*//' >before
  fake 1 forged.pb.gz "pid=$roots service=serve_program" "pid=$secret service=serve_program" "pid=1 service=serve_program" \
    "pid=$gone service=serve_program" "pid=$his pid=$secret" "pid=$his" "pid=$his" "pid=$his service=serve_program" \
    "pid=0$roots" "pid=-1" "pid=$((secret + (1 << 32)))" 'pid=' 'service=serve_program' "pid=$acting service=serve_program"
  # His own is there: the list has been taken.
  wait_for 20 lists $his
  metric 'heaptap_targets{service_name="serve_program"}' 1 || fail "$(curl -s "$url/metrics")"
  # Nor does he say where our files are.
  lists "$roots" || fail 'nothing of ours is listed'
  curl -s "$url/api/v1/profiles" >profiles
  ! curl -s "$url/api/v1/processes" | grep '"program":"leaky"' || fail 'files were looked for where a stranger says'
  for pid in $secret $acting 1 $gone 0; do
    ! lists $pid || fail "process $pid: $(curl -s "$url/api/v1/processes")"
    equal 404 "$(fetch "/pid/$pid/debug/pprof/cmdline")" "the command line of $pid"
    ! grep -q hunter2 body || fail 'the command line of a process of root'
  done
  metric 'heaptap_serve_rows_left_out' 13 || fail "$(curl -s "$url/metrics" | grep left_out)"
  metric "heaptap_targets{service_name=\"unknown@$stranger\"}" 1 || fail "$(curl -s "$url/metrics")"
  curl -s "$url/metrics" | grep -E '^heaptap_(inuse_bytes|samplers|sampler_resident|disk)' | sed 's/ .*e+.*//' >after
  equal 1 "$(sed -n 's/^heaptap_samplers //p' after)" samplers
  equal "$(grep 'inuse_bytes{service_name="serve_program"}' before)" "$(grep 'inuse_bytes{service_name="serve_program"}' after)"
  equal 0 "$(sed -n 's/^heaptap_disk_bytes //p' after)" 'bytes on disk'
  # His is read like the profiles of anybody, and root's stays.
  equal 200 "$(fetch "/pid/$his/debug/pprof/cmdline")"
  equal 200 "$(fetch "/pid/$roots/debug/pprof/cmdline")"
  for path in "/pid/$roots" /service/serve_program; do
    equal 200 "$(fetch "$path/debug/pprof/heap")" "$path"
    cp body heap.pb.gz
    at_least 300000 "$(total_of heap.pb.gz inuse_space)" "$path"
  done
  profile_check heap.pb.gz
}
test_lies_about_processes() {
  on_a_machine inside_lies
}

# no_control FILE: nothing in it steers a terminal
no_control() {
  ! LC_ALL=C grep -aq $'[\x01-\x08\x0b-\x1f\x7f\x9b]' "$1" || fail "$how: $(od -c "$1" | head)"
}

# He answers what was not asked: a list as if it were a profile, which nobody looks through, and the other way round.
inside_other_answers() {
  local roots his how
  program a -p 1 -b copy
  tell a 'hold 300'
  roots=$(cat a.pid)
  "${as_stranger[@]}" sleep 600 &
  his=$!
  children+=($his)
  : >forged.pb.gz
  echo none right >how
  fake 1 forged.pb.gz "pid=$roots service=serve_program" "pid=1 service=serve_program" "pid=$his service=his"$'\e[31m'
  serve
  wait_for 20 lists $his
  metric 'heaptap_targets{service_name="serve_program"}' 1 || fail "$(curl -s "$url/metrics")"
  # The list of paths has his name in it, and many lines.
  equal 404 "$(fetch /pid/2147483647/debug/pprof/heap)"
  matches "^/pid/$his/debug/pprof/heap" body
  matches "^/pid/$roots/debug/pprof/heap" body
  for path in /metrics /sd /api/v1/processes /debug/pprof/; do
    equal 200 "$(fetch $path)" $path
    no_control body
  done
  fetch /pid/2147483647/debug/pprof/heap >/dev/null
  no_control body
  for how in 'list profile' 'list written' 'list asked' 'list failed' 'heap list' 'heap written' 'heap asked' 'heap failed'; do
    echo "$how" >how
    for attempt in 1 2; do
      equal 200 "$(fetch "/pid/$roots/debug/pprof/heap")" "beside $how"
      metric 'heaptap_targets{service_name="serve_program"}' 1 || fail "$how: $(curl -s "$url/metrics" | grep targets)"
      ! lists 1 || fail "$how: a process of root's is listed"
      sleep 1.1 # another look
    done
    case "$how $(fetch "/pid/$his/debug/pprof/heap")" in list*\ 404 | heap*\ 500) ;; *) fail "$how: $(cat head body)" ;; esac
    ! grep -aq shadow body || fail "$how"
    no_control body
  done
}
test_answers_to_other_questions() {
  on_a_machine inside_other_answers
}

# Without a choice root's only process is meant, whatever a stranger profiles.
inside_choice() {
  local his
  "${as_stranger[@]}" sleep 600 &
  his=$!
  children+=($his)
  program a -p 1 -b copy
  tell a 'hold 300'
  fake 1 forged.pb.gz "pid=$his service=other"
  serve
  wait_for 20 lists $his
  wait_for 20 lists "$(cat a.pid)"
  equal 200 "$(fetch /debug/pprof/heap)"
  cp body heap.pb.gz
  at_least 300000 "$(total_of heap.pb.gz inuse_space)"
  profile_check heap.pb.gz
  equal 200 "$(fetch /api/v1/top)"
  # One more of root's: there is a choice.
  program b -p 1 -b copy
  wait_for 20 lists "$(cat b.pid)"
  equal 404 "$(fetch /debug/pprof/heap)"
  matches "^/pid/$his/" body
}
test_without_a_choice() {
  on_a_machine inside_choice
}

# Both root and the owner sample it, as they say: root is right.
inside_claims() {
  local both
  user=("${as_stranger[@]}")
  mkdir -m 777 b
  mkfifo b/in
  sleep 600 >b/in &
  children+=($!)
  "$heaptap" record -q --interval 0 -p 1 -b copy -o b/%n.pb.gz "${as_stranger[@]}" "$targets/serve_program" <b/in >b/out 2>b/err &
  echo $! >b.front
  children+=($!)
  wait_for 20 test -s b/out
  both=$(child_of "$(cat b.front)" serve_program)
  user=()
  serve
  wait_for 20 lists "$both"
  fake 1 forged.pb.gz "pid=$both service=serve_program" "pid=$$"
  fake 2 forged.pb.gz "pid=$both"
  wait_for 20 metric heaptap_serve_rows_left_out 1
  for attempt in 1 2 3; do
    equal 200 "$(fetch "/pid/$both/debug/pprof/heap")"
    sleep 1.1 # another look, another profile
  done
  # What executed it has left a profile, and is a process of its own.
  curl -s "$url/api/v1/processes" >processes
  equal 1 "$(python3 -c 'import json, sys
print(sum(p["pid"] == int(sys.argv[1]) and p["running"] for p in json.load(open("processes"))["processes"]))' "$both")" 'rows of it'
  metric 'heaptap_targets{service_name="serve_program"}' 1 || fail "$(curl -s "$url/metrics" | grep targets)"
}
test_who_is_right() {
  on_a_machine inside_claims
}

# He has sockets without end, dead ones too: root's session that comes later is found.
inside_many() {
  local his
  "${as_stranger[@]}" sleep 600 &
  his=$!
  children+=($his)
  fake 1 forged.pb.gz "pid=$his"
  "${as_stranger[@]}" /usr/bin/python3 -c '
import socket, sys, time
kept = []
for i in range(400):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(f"/run/user/4243/heaptap/x{i}.sock")
    if i % 2:
        s.listen(1)
        kept.append(s)
print("ready", flush=True)
time.sleep(600)' >many &
  children+=($!)
  wait_for 20 grep -q ready many
  serve
  fetch /metrics >/dev/null
  program a -p 1 -b copy
  tell a 'hold 300'
  wait_for 20 lists "$(cat a.pid)"
  equal 200 "$(fetch "/pid/$(cat a.pid)/debug/pprof/heap")"
}
test_sockets_without_end() {
  on_a_machine inside_many
}

# A profile of 400 KB that is 400 MB, and one that really is: refused, and others do not wait for it.
inside_bomb() {
  local his
  program a -p 1 -b copy
  tell a 'hold 300'
  "${as_stranger[@]}" sleep 600 &
  his=$!
  children+=($his)
  head -c 400000000 /dev/zero | gzip -1 >bomb.pb.gz
  fake 1 bomb.pb.gz "pid=$his"
  serve
  wait_for 20 lists $his
  equal 500 "$(fetch "/pid/$his/debug/pprof/heap?debug=1")"
  matches 'too much memory' body
  equal 413 "$(fetch "/api/v1/top?id=now-$his")"
  # Those that wait for root's profile go before those that wait for such ones.
  for i in $(seq 30); do
    curl -s -o "bomb.$i" -w '%{http_code}\n' --max-time "$(seconds 60)" "$url/pid/$his/debug/pprof/heap?debug=1" >>bombs &
  done
  for i in 1 2 3; do
    equal 200 "$(fetch "/pid/$(cat a.pid)/debug/pprof/heap?debug=1")"
  done
  [ "$(wc -l <bombs)" -lt 30 ] || fail 'the bombs were all first'
}
test_a_profile_that_is_a_bomb() {
  on_a_machine inside_bomb
}

# Root serves the profiles in a folder of the stranger's, who puts a link in the place of one: root's are not shown.
test_a_link_in_the_place_of_a_profile() {
  need_root
  user=()
  mkdir his
  chown $stranger his
  record -q -p 1 -b copy -o his/a.pb.gz "$targets/snapshot_api" hold 10
  record -q -p 1 -b copy -o roots.pb.gz "$targets/snapshot_api" hold 10 hold 7
  find his -type f ! -name a.pb.gz -delete # its peak
  chown $stranger his/a.pb.gz
  ! "${as_stranger[@]}" cat roots.pb.gz >/dev/null 2>&1 || fail 'all may read it'
  cp his/a.pb.gz kept
  chown $stranger kept
  serve his
  for attempt in 1 2 3; do
    wait_for 20 bash -c "curl -s '$url/api/v1/profiles' | grep -q '\"id\"'"
    id=$(curl -s "$url/api/v1/profiles" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    "${as_stranger[@]}" rm his/a.pb.gz
    "${as_stranger[@]}" ln -s "$PWD/roots.pb.gz" his/a.pb.gz
    if [ "$(fetch "/api/v1/profile?id=$id")" = 200 ]; then
      [ "$(total_of body alloc_objects)" != "$(total_of roots.pb.gz alloc_objects)" ] || fail "root's profile is shown"
    fi
    rm his/a.pb.gz
    cp -p kept his/a.pb.gz
  done
}

# The folder of the socket is the stranger's, who puts a link in its place: nothing elsewhere is removed at the end.
test_a_folder_of_the_socket_that_is_exchanged() {
  need_root
  user=()
  mkdir -p his/run roots
  chown -R $stranger his
  echo precious >roots/web
  "$heaptap" serve --listen "unix:$PWD/his/run/web" 2>serve.err &
  children+=($!)
  wait_for 20 test -S his/run/web
  mv his/run his/away
  ln -s "$PWD/roots" his/run
  equal 200 "$(curl -sS -o body -w '%{http_code}' --unix-socket his/away/web http://localhost/healthz)"
  kill "${children[-1]}"
  wait "${children[-1]}" || :
  equal precious "$(cat roots/web)"
  [ ! -e his/away/web ] || fail 'its own socket is left'
  # What is in the way and not ours stays, too.
  "${as_stranger[@]}" /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("his/away/web")'
  equal 2 "$(status_of "$heaptap" serve --listen "unix:$PWD/his/away/web")"
  [ -S his/away/web ] || fail 'a socket of the stranger is gone'
}
