# SPDX-License-Identifier: Apache-2.0
# Where processes are found: other users', other namespaces', and a user's own by that user's daemon.
# timeout: 60

. "$top/tests/daemon_lib.sh"

# as_user COMMAND... &: in place of the subshell, so that $! is its pid
as_user() {
  exec setpriv --reuid "$other_user" --regid 65534 --clear-groups --inh-caps=-all "$@"
}

test_of_another_user() {
  stage daemon_steps daemon_offer
  chmod 777 .
  start_daemon
  LD_PRELOAD=$PWD/bin/libheaptap.so unprivileged "$PWD/bin/daemon_steps" on hold 100 1000 touch held await go &
  wait_for 20 test -e held
  touch go
  wait $!
  found() { ls store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  reached_exactly "$(only store/steps/*/*.exit.pb.gz)" hold 'inuse_space 100000'
  stop_daemon
}

# A worker that gives up its user after the fork keeps its own books, and its parent's stacks are closed to it. It
# has few buffers for its own stacks: a snapshot empties them first, and then none of 50 stacks is lost.
test_worker_of_another_user() {
  stage daemon_steps daemon_offer
  chmod 777 .
  start_daemon
  carry fork user "$other_user" on touch sampled await empty hold 50 1000 touch held await go &
  master=$!
  wait_for 20 test -e sampled
  snapshot_all "$(child_of $master daemon_steps)"
  touch empty
  wait_for 20 test -e held
  touch go
  wait $master
  found() { ls store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  reached_exactly "$(only store/steps/*/*.exit.pb.gz)" hold 'inuse_space 50000'
  equal '' "$(sed -n '/^lost inuse_space/p' reached | grep -v ' 0$')" 'lost stacks'
  stop_daemon
}

# In other mount, pid, net, ipc and uts namespaces: found, and its own files' functions are named.
test_in_namespaces() {
  unshare -mpfnui true 2>/dev/null || skip 'no namespaces can be made'
  start_daemon
  LD_PRELOAD=$PWD/bin/libheaptap.so unshare -mpfnui --mount-proc "$PWD/bin/daemon_steps" on hold 100 1000 touch held await go &
  wait_for 20 test -e held
  touch go
  wait $!
  found() { ls store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  reached_exactly "$(only store/steps/*/*.exit.pb.gz)" hold 'inuse_space 100000'
  stop_daemon
}

# What calls itself by many names, without a section of the configuration: four may be its owner's in so small a store,
# and of the rest nothing is lost. The daemon is in a pid namespace, where no other process carries the library.
test_many_names_of_one_owner() {
  unshare -pf --mount-proc true 2>/dev/null || skip 'no namespaces can be made'
  stage daemon_steps daemon_offer
  cat >heaptap.conf <<CONF
[daemon]
disk = 1M
days = 63
[service]
period = 1
interval = 0
[service known]
match.comm = known
CONF
  cat >inside.sh <<'SH'
"$heaptap" daemon --config heaptap.conf --store store --socket "$PWD/run/control" -v 2>daemon.log &
daemon=$!
export LD_PRELOAD=$PWD/bin/libheaptap.so
cp bin/daemon_steps bin/known
bin/known on hold 100 1000
for number in 1 2 3 4 5 6; do
  OTEL_SERVICE_NAME=chosen$number bin/daemon_steps on hold 100 1000
done
bin/known on hold 100 1000
unset LD_PRELOAD
deadline=$((SECONDS + 20 * TEST_TIME_FACTOR))
until [ "$(ls store/*/*/*.exit.pb.gz 2>/dev/null | wc -l)" = 8 ] || [ $SECONDS -gt $deadline ]; do sleep 0.1; done
kill -TERM $daemon
wait $daemon
SH
  export heaptap
  unshare -pf --mount-proc bash inside.sh
  equal 'chosen1 1
chosen2 1
chosen3 1
chosen4 1
known 2
others 2' "$(ls store/*/*/*.exit.pb.gz | cut -d / -f 2 | sed 's/^others\..*/others/' | sort | uniq -c | awk '{ print $2, $1 }')" 'profiles by folder'
  for profile in store/others.*/*/*.exit.pb.gz; do
    comment_of "$profile"
  done >comments # each says its own name
  equal 'chosen5 chosen6' "$(grep -o '^labels: service_name=[a-z0-9]*' comments | cut -d = -f 2 | sort | xargs)" 'names'
}

# The thread that notices the daemon has a number inside that is nobody's outside.
test_thread_in_namespaces() {
  unshare -mpfnui true 2>/dev/null || skip 'no namespaces can be made'
  stage daemon_steps daemon_offer
  LD_PRELOAD=$PWD/bin/libheaptap.so unshare -mpfnui --mount-proc "$PWD/bin/daemon_steps" thread 2 touch there on \
    on hold 100 1000 fork hold 50 1000 touch held await go drop 10 &
  program=$!
  wait_for 20 test -e there
  start_daemon
  wait_for 20 test -e held
  both_profiled() {
    "$heaptap" status --socket "$PWD/run/control" --json >status.json &&
      [ "$(grep -o '"profiled":true[^}]*"samples":[1-9]' status.json | wc -l)" = 2 ]
  }
  wait_for 20 both_profiled
  touch go
  wait $program
  both() { [ "$(ls store/steps/*/*.exit.pb.gz 2>/dev/null | wc -l)" = 2 ]; }
  wait_for 20 both
  equal 240000 "$(sums inuse_space store/steps/*/*.exit.pb.gz)" 'in use of both'
  stop_daemon
}

# map_files is closed to a user's own daemon: it attaches to what carries the library.
test_daemon_of_a_user() {
  stage daemon_steps daemon_offer
  configure
  chmod 777 .
  mkdir -m 777 home
  as_user env HOME="$PWD/home" "$heaptap" daemon --config heaptap.conf --store home/store \
    --socket "$PWD/home/run/control" -v 2>daemon.log &
  daemon=$!
  wait_for 20 grep -q 'control socket' daemon.log
  as_user env LD_PRELOAD="$PWD/bin/libheaptap.so" "$PWD/bin/daemon_steps" touch there await go hold 100 1000 touch held await end &
  target=$!
  wait_for 20 test -e there
  attached() { grep -qE "pid $target: attached|cannot be attached" daemon.log; }
  wait_for 30 attached
  touch go
  wait_for 20 test -e held
  touch end
  wait $target
  found() { ls home/store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  reached_exactly "$(only home/store/steps/*/*.exit.pb.gz)" hold 'inuse_space 100000'
  kill "$daemon"
  wait "$daemon"
}

# What it costs a process to carry the library and not to be profiled: counted, by its system calls and its memory.
test_cost_of_who_is_not_profiled() {
  command -v strace >/dev/null || skip 'no strace'
  stage daemon_steps
  calls() {
    strace -f -o trace env -i "$@" /bin/true
    awk '/execve\(/ { n = 0 } { n++ } END { print n }' trace
  }
  without=$(calls HEAPTAP_DISABLE=1 LD_PRELOAD="$PWD/bin/libheaptap.so")
  with=$(calls LD_PRELOAD="$PWD/bin/libheaptap.so")
  at_most 27 $((with - without)) 'system calls of an offer'
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/daemon_steps" touch there await go &
  target=$!
  wait_for 20 test -e there
  shared=$(awk '/memfd:heaptap/ { here = 1 } here && /^Rss:/ { print $2; exit }' /proc/$target/smaps)
  equal 4 "$shared" 'KiB of the offer that are there'
  touch go
  wait $target
}
