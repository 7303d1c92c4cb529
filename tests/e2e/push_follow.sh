# SPDX-License-Identifier: Apache-2.0
# `heaptap push --follow`, the service: what waits on disk, and is sent once.

. "$top/tests/push.sh"

# What lies there, what is written in it, and below it, goes to the server; neither peaks nor anything else.
test_follow() {
  local name
  snapshots >files
  mkdir -p store/day
  server
  name=pyroscope-127.0.0.1-$port
  cp -p p.0001-a.pb.gz store/
  echo none >store/other.pb.gz
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" sent 1
  # Renamed into place, written in place, in a new folder below.
  cp p.0002-b.pb.gz store/.tmp && mv store/.tmp store/p.0002-b.pb.gz
  wait_for 20 counted "$name" sent 2
  cp p.0003-c.pb.gz store/day/
  wait_for 20 counted "$name" sent 3
  mkdir -p new/folder
  cp p.exit.pb.gz new/folder/
  record -q -p 4K -o new/folder/ "$targets/leaky" 10 64
  ls new/folder | grep -q peak || fail 'no peak'
  rm new/folder/*leaky*.exit.pb.gz
  mv new store/
  wait_for 20 counted "$name" sent 4
  same_as_files
  # It was told nothing twice, also not by a second run.
  follow_end
  follow --to "pyroscope+http://127.0.0.1:$port" store
  touch store/p.0001-a.pb.gz
  cp p.0001-a.pb.gz store/another.pb.gz
  made store/z.pb.gz 1 5 3 77
  wait_for 20 counted "$name" sent 5
  follow_end
  equal 5 "$(requests)" requests
  equal 'shop a shop.service' "$(said 0005 'r["labels"]["service_name"] + " " + r["labels"]["unit"]')" labels
  equal 0 "$(spooled "$name")" 'files in the spool'
}

# The server is away: profiles wait, whoever is killed meanwhile; then all of them arrive, once.
test_follow_outage() {
  local name i
  snapshots >files
  mkdir store
  server
  kill $server_pid
  wait $server_pid || :
  printf '[daemon]\nstore = %s\n[push one]\nurl = pyroscope+http://127.0.0.1:%s\nlabel.env = prod\n' \
    "$PWD/store" "$port" >heaptap.conf
  follow --config heaptap.conf
  i=0
  for file in $(cat files); do
    cp "$file" "store/$file"
    i=$((i + 1))
    wait_for 20 spooled_is one $i
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    follow --config heaptap.conf
  done
  # The store keeps only the newest: the others are in the spool.
  rm store/p.0001-a.pb.gz
  wait_for 20 grep -q 'one: Failed to connect.*; again in' follow.err
  server server "$port"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :' EXIT
  wait_for 60 counted one sent 4
  same_as_files
  equal 4 "$(for i in 1 2 3 4; do said 000$i 'r["id"]'; done | sort -u | wc -l)" 'ids'
  equal prod "$(said 0004 'r["labels"]["env"]')" label
  # Killed again and again, it sends nothing that was acknowledged.
  for i in 1 2 3 4 5; do
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    made store/more$i.pb.gz $((20 - i)) 5 3 77
    follow --config heaptap.conf
    wait_for 20 counted one sent $((4 + i))
  done
  follow_end
  equal 9 "$(requests)" requests
  matches 'one: sending works again' follow.err
}

# SIGKILL in the middle of requests: what was not acknowledged is sent again, under the same id.
test_follow_killed() {
  local i
  server
  mkdir store
  plan never
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  for i in 1 2 3; do
    wait_for 20 test -e server/000$i.json
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    follow --to "pyroscope+http://127.0.0.1:$port" store
  done
  wait_for 20 test -e server/0004.json
  kill -KILL $follow_pid
  wait $follow_pid 2>/dev/null || :
  mkdir waiting
  cp "$spool/pyroscope-127.0.0.1-$port"/{*.pb.gz,counters} waiting/
  plan ok
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "pyroscope-127.0.0.1-$port" sent 1
  follow_end
  # How many the server may have twice is counted: the four whose answers nobody read.
  counted "pyroscope-127.0.0.1-$port" resent 4 || fail "$(cat "$spool"/*/counters)"
  # As if it had been killed after the acknowledgement was noted, and before the profile was counted; or removed.
  for i in 'waiting/*' 'waiting/*.pb.gz'; do
    cp $i "$spool/pyroscope-127.0.0.1-$port/"
    follow --to "pyroscope+http://127.0.0.1:$port" store
    wait_for 20 spooled_is "pyroscope-127.0.0.1-$port" 0
    follow_end
    counted "pyroscope-127.0.0.1-$port" sent 1 || fail "$i: $(cat "$spool"/*/counters)"
  done
  equal 5 "$(requests)" requests
  equal 1 "$(for i in 1 2 3 4 5; do said 000$i 'r["id"]'; done | sort -u | wc -l)" 'ids'
}

# An answer that never came leaves one more that may be there twice; one that came does not, and neither does a request
# that never arrived.
test_follow_unread() {
  local name
  server
  mkdir store
  plan never 503 ok
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\ntimeout = 500ms\n' "$port" >heaptap.conf
  made store/a.pb.gz 9 5 3 77
  follow --config heaptap.conf store
  wait_for 30 counted one sent 1
  counted one retried 2 && counted one resent 1 || fail "$(cat "$spool/one/counters")"
  kill $server_pid
  wait $server_pid || :
  made store/b.pb.gz 8 5 3 77
  wait_for 20 grep -q 'one: Failed to connect.*; again in' follow.err
  server server "$port"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :' EXIT
  plan ok
  wait_for 60 counted one sent 2
  follow_end
  counted one resent 1 || fail "$(cat "$spool/one/counters")"
}

# The clock is set back: what comes with a time before the last one's is counted, said once, and not sent; what was
# allocated meanwhile comes with the next one, also after a restart.
test_follow_clock_set_back() {
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\n' "$port" >heaptap.conf
  made store/a.pb.gz 3 5 3 77
  follow --config heaptap.conf store
  wait_for 20 counted one sent 1
  made store/b.pb.gz 30 6 3 77
  wait_for 20 counted one passed_over 1
  made store/c.pb.gz 25 7 3 77
  wait_for 20 counted one passed_over 2
  equal 1 "$(grep -c 'one: profiles of pid 77 are passed over until the clock catches up: it was set back by 2[0-9] s' \
    follow.err)" 'lines about it'
  follow_end
  follow --config heaptap.conf store
  made store/d.pb.gz 0 8 3 77
  wait_for 20 counted one sent 2
  follow_end
  # What was there already is not counted again.
  counted one passed_over 2 || fail "$(cat "$spool/one/counters")"
  equal 2 "$(requests)" requests
  equal "$(total_of store/d.pb.gz alloc_space)" "$(sums alloc_space server/*.pb.gz)" 'what was allocated'
}

# More than the spool holds lies there when it begins: the server takes it, so nothing need be dropped.
test_follow_more_than_the_spool() {
  local i each
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\nspool = 1M\n' "$port" >heaptap.conf
  made store/1.pb.gz 60 6000 300 101
  each=$(stat -c %s store/1.pb.gz)
  [ "$each" -gt 300000 ] && [ "$each" -lt 900000 ] || fail "$each bytes each"
  for i in 2 3 4; do
    made store/$i.pb.gz $((60 - i)) 6000 300 $((100 + i))
  done
  [ $((each * 4)) -gt 1048576 ] || fail "$each bytes each"
  follow --config heaptap.conf store
  wait_for 60 counted one sent 4
  counted one dropped 0 || fail "$(cat "$spool/one/counters")"
  follow_end
}

# spent: CPU time of the service, in ticks of 10 ms
spent() {
  awk '{ print $14 + $15 }' "/proc/$follow_pid/stat"
}

# The last profile leaves the spool between two attempts: there is nothing to wait for, nor to be busy with.
test_follow_idle_after_a_failure() {
  local before after name
  server
  name=pyroscope-127.0.0.1-$port
  mkdir store later known
  made later/b.pb.gz 5 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" later
  wait_for 20 counted "$name" sent 1
  follow_end
  mv "$spool/$name/state"/*.accepted known/
  rm -r "$spool/$name"
  kill $server_pid
  wait $server_pid || :
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 grep -q 'Failed to connect.*; again in' follow.err
  # As if it had been killed after the acknowledgement of a later one: it is passed over.
  cp known/*.accepted "$spool/$name/state/"
  wait_for 60 spooled_is "$name" 0
  before=$(spent)
  sleep 2
  after=$(spent)
  [ $((after - before)) -le 10 ] || fail "$((after - before)) ticks of CPU in 2 s with nothing to do"
  follow_end
}

# A budget is kept, the oldest go first; so does what is too old by the time the server is back.
test_follow_budget() {
  local i
  server
  kill $server_pid
  wait $server_pid || :
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\nspool = 1M\n' "$port" >heaptap.conf
  for i in 1 2 3 4; do
    made "store/$i.pb.gz" $((60 - i)) 6000 300 $((100 + i))
  done
  local each
  each=$(stat -c %s store/1.pb.gz)
  [ "$each" -gt 300000 ] && [ "$each" -lt 900000 ] || fail "$each bytes each"
  follow --config heaptap.conf store
  wait_for 30 counted one dropped $((4 - 1048576 / each))
  made store/5.pb.gz 5 6000 300 105
  wait_for 30 counted one dropped $((5 - 1048576 / each))
  follow_end
  [ "$(find "$spool/one" -maxdepth 1 -name '*.pb.gz' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')" -le 1048576 ] ||
    fail 'over budget'
  matches 'profiles? dropped, the oldest: the spool is full' follow.err
  # The newest is among those that are left.
  cmp store/5.pb.gz "$(find "$spool/one" -maxdepth 1 -name '*.pb.gz' | sort | tail -n 1)"
}

# What was accepted is not known any more: what is in use is sent, nothing is claimed to be newly allocated.
test_follow_damaged() {
  local name
  server
  mkdir store
  name=pyroscope-127.0.0.1-$port
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" sent 1
  for file in "$spool/$name"/state/*.accepted; do
    echo garbage >"$file"
  done
  made store/b.pb.gz 8 5 3 77
  wait_for 20 counted "$name" sent 2
  equal "$(total_of store/b.pb.gz inuse_space)" "$(total_of server/0002-0.pb.gz inuse_space)" 'in use'
  equal '' "$(total_of server/0002-0.pb.gz alloc_space)" 'allocated'
  matches 'what was sent before is not known any more: no alloc_\* this time' follow.err
  # From then on it is known again; and what is no profile is moved aside.
  made store/c.pb.gz 7 5 3 77
  wait_for 20 counted "$name" sent 3
  equal "$(total_of store/c.pb.gz inuse_space)" "$(total_of server/0003-0.pb.gz inuse_space)" 'in use'
  kill "$follow_pid"
  wait "$follow_pid"
  echo garbage >"$spool/$name/00000000000000000001-0$(date +%s%N)-00000000000000aa-s.pb.gz"
  # What somebody who was killed has half written goes.
  touch -d '2 minutes ago' "$spool/$name/.heaptap-0123456789abcdef.tmp"
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" rejected 1
  [ ! -e "$spool/$name/.heaptap-0123456789abcdef.tmp" ] || fail 'the file that is half written stays'
  follow_end
}

# A full disk: profiles wait where they are, and are taken when there is room.
test_follow_full_disk() {
  need_root
  server
  mkdir store state
  mount -t tmpfs -o size=64k none state 2>mount.err || skip "no tmpfs: $(cat mount.err)"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :; umount -l state' EXIT
  made store/a.pb.gz 20 6000 60 77
  [ "$(stat -c %s store/a.pb.gz)" -gt 65536 ] || fail 'too small'
  "$heaptap" push --follow --to "pyroscope+http://127.0.0.1:$port" store 2>>follow.err &
  follow_pid=$!
  wait_for 20 grep -q 'cannot write to the spool: No space left on device; profiles wait where they are' follow.err
  made store/b.pb.gz 10 5 3 77
  mount -o remount,size=16m state
  wait_for 30 counted "pyroscope-127.0.0.1-$port" sent 2
  equal "$(total_of store/a.pb.gz inuse_space)" "$(total_of server/0001-0.pb.gz inuse_space)" 'the first'
  follow_end
}

# The spool itself has filled the disk to its last block: what is acknowledged makes room for the note that it was.
test_follow_full_of_spool() {
  local i name
  need_root
  server
  name=pyroscope-127.0.0.1-$port
  kill $server_pid
  wait $server_pid || :
  mkdir store state
  mount -t tmpfs -o size=128k none state 2>mount.err || skip "no tmpfs: $(cat mount.err)"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :; umount -l state' EXIT
  for i in 1 2 3 4 5; do
    made "store/$i.pb.gz" $((60 - i)) 5 3 $((100 + i))
  done
  "$heaptap" push --follow --to "pyroscope+http://127.0.0.1:$port" store 2>>follow.err &
  follow_pid=$!
  wait_for 20 grep -q 'cannot write to the spool: No space left on device; profiles wait where they are' follow.err
  dd if=/dev/zero of=state/rest bs=4k 2>dd.err || :
  rm -f "$spool/$name/counters"
  dd if=/dev/zero of=state/more bs=4k 2>dd.err || :
  server server "$port"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :; umount -l state' EXIT
  wait_for 30 counted "$name" sent 5
  follow_end
  equal 5 "$(requests)" requests
}

# Written by another name that is no secret one, found there, and renamed before it was read: that it was gone says
# nothing of the file, which is the same one still.
test_follow_renamed_before_it_is_read() {
  local i
  server
  plan never
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\nspool = 1M\ntimeout = 5s\n' "$port" >heaptap.conf
  for i in 1 2; do
    made store/$i.pb.gz $((60 - i)) 12000 300 $((100 + i))
    [ "$(stat -c %s store/$i.pb.gz)" -gt 600000 ] || fail 'both fit into the spool'
  done
  made store/copied.tmp 5 5 3 77
  # In the order of their times: the second waits for room while the first is under way.
  touch -d '30 seconds ago' store/1.pb.gz
  touch -d '20 seconds ago' store/2.pb.gz
  touch -d '10 seconds ago' store/copied.tmp
  follow --config heaptap.conf store
  wait_for 30 test -e server/0001.json
  mv store/copied.tmp store/copied.pb.gz
  plan ok
  small_came() { [ "$(find server -name '*-0.pb.gz' -size -50k | wc -l)" = 1 ]; }
  wait_for 40 small_came
  follow_end
}

# SIGTERM and then SIGHUP, as a service manager and a closed terminal send them: it ends, with the answer to what is under
# way. What was ignored already when it was started, as by `nohup`, and SIGINT in a shell's background, it ignores.
test_follow_signals() {
  local signal signals
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\ntimeout = 1h\n' "$port" >heaptap.conf
  made store/a.pb.gz 9 5 3 77
  ended() { ! kill -0 $follow_pid 2>/dev/null; }
  for signals in 'INT TERM HUP' 'HUP TERM'; do
    plan never
    follow --config heaptap.conf store
    wait_for 20 test -e "server/000$(($(requests) + 1)).json"
    for signal in $signals; do
      kill -$signal $follow_pid
    done
    kill $server_pid
    wait $server_pid || :
    wait_for 20 ended
    wait $follow_pid || equal 143 $? "status after $signals"
    server server "$port"
  done
  equal 2 "$(requests)" requests
  counted one retried 2 || fail "the requests were not waited for: $(cat "$spool/one/counters")"
  (trap '' HUP TERM INT && exec "$heaptap" push --follow --config heaptap.conf store 2>>follow.err) &
  follow_pid=$!
  trap 'kill -KILL $follow_pid; kill $server_pid 2>/dev/null || :' EXIT
  plan ok
  wait_for 20 counted one sent 1
  for signal in HUP TERM INT; do
    kill -$signal $follow_pid
  done
  made store/b.pb.gz 8 5 3 77
  wait_for 20 counted one sent 2
}

# A target of its own for each section; what is wrong in the file is said with its line.
test_follow_config() {
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\ntypes = inuse_space\n[push two]\nurl = parca+http://127.0.0.1:%s\n' \
    "$port" "$port" >heaptap.conf
  follow --config heaptap.conf store
  made store/a.pb.gz 5 5 3 77
  wait_for 20 counted one sent 1
  wait_for 20 counted two sent 1
  # A reload, by the name of the process' own file.
  printf '[push three]\nurl = parca+http://127.0.0.1:%s\n' "$port" >heaptap.conf
  kill -HUP $follow_pid
  wait_for 20 counted three sent 1
  # A slip in the file does not end the service.
  printf '[push three]\nurl = nowhere\n' >heaptap.conf
  kill -HUP $follow_pid
  wait_for 20 grep -q "^heaptap: heaptap.conf:2: 'nowhere' is no address.*: what was read before stays in force" follow.err
  made store/b.pb.gz 4 5 3 77
  wait_for 20 counted three sent 2
  follow_end
  equal 4 "$(requests)" requests
  printf '[push one]\nurl = http://host\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:2: 'http://host' is no address for profiles; give pyroscope" err
  printf '[push one]\nurl = parca+http://host\nspol = 5M\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:3: 'spol' is none of url, token-file" err
  printf '[push a/b]\nurl = parca+http://host\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:1: 'a/b' is no name for a target" err
  printf '[daemon]\nstore = /nowhere\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf)" status
  matches 'has no section \[push NAME\]$' err
  equal 2 "$(status_of push --follow --config heaptap.conf --label env=x store)" 'status with an option of no target'
  matches 'options of a target go with --to URL' err
}

# begin_unprivileged WORDS... &: heaptap by a user other than root, in place of the subshell: $! is its pid
begin_unprivileged() {
  [ "$(id -u)" = 0 ] || exec "$heaptap" "$@"
  exec setpriv --reuid "$other_user" --regid 65534 --clear-groups --inh-caps=-all "$heaptap" "$@"
}

# Without a word it reads the user's own configuration, and follows the daemon's store; also without [daemon] store.
test_follow_usual_places() {
  server
  stage
  cp "$HEAPTAP_PROGRAMS/heaptap-push" bin/
  mkdir -p config/heaptap state/heaptap/store/shop/2026-11-22
  export XDG_CONFIG_HOME=$PWD/config
  chmod -R 777 config state
  made z.pb.gz 1 5 3 77
  chmod 644 z.pb.gz
  unprivileged "$heaptap" push --follow 2>err && fail 'no configuration, and it begins'
  if [ "$(id -u)" != 0 ] || [ ! -e /etc/heaptap/heaptap.conf ]; then
    matches 'cannot read .*config/heaptap/heaptap.conf: No such file or directory; give --to URL or --config FILE' err
  fi
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\n' "$port" >config/heaptap/heaptap.conf
  begin_unprivileged push --follow -v 2>follow.err &
  follow_pid=$!
  trap 'kill $follow_pid $server_pid 2>/dev/null || :' EXIT
  wait_for 20 grep -q "following $PWD/state/heaptap/store" follow.err
  cp z.pb.gz state/heaptap/store/shop/2026-11-22/
  wait_for 20 counted one sent 1
  follow_end
  # And with a target alone: that store, too.
  begin_unprivileged push --follow -v --to "parca+http://127.0.0.1:$port" 2>>follow.err &
  follow_pid=$!
  wait_for 20 counted "parca-127.0.0.1-$port" sent 1
  follow_end
}
