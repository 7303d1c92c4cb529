# SPDX-License-Identifier: Apache-2.0
# The snapshot signal: what the program that gets it sees, and what is written.

# The same steps with and without heaptap print the same and end the same.
same() {
  native=$(status_of "$targets/snapshot_signal" "$@")
  mv out native.out
  equal "$native" "$(status_of "$heaptap" record -q -p 1K -o same/ "$targets/snapshot_signal" "$@")" "status of: $*"
  diff native.out out || fail "output differs: $*"
}

test_a_program_with_a_handler_behaves_as_without_us() {
  for handler in '' early; do
    export HANDLER=$handler
    same tell handle tell raise
    same handle default tell
    same handle default raise
    same default raise
    same ignore raise tell
    same handle fork
    same tell default tell ignore tell handle tell raise raise
  done
  HANDLER=early same tell raise fork
  profile_check same/*.pb.gz
}

test_sigaction_tells_the_truth_of_a_program_without_a_handler() {
  record -q -o tell.pb.gz "$targets/snapshot_signal" tell raise exec tell raise fork >out
  equal 'is default, flags 0, mask empty
handled 0, errno 4711
is default, flags 0, mask empty
handled 0, errno 4711
is default, flags 0, mask empty
handled 0, errno 4711
child status 7' "$(cat out)"
}

test_ignored_stays_ignored() {
  (
    trap '' USR1
    record -q "$targets/snapshot_signal" tell raise >out
  )
  equal 'is ignored, flags 0, mask empty
handled 0, errno 4711' "$(cat out)"
}

test_signal_none_leaves_the_default() {
  equal 138 "$(status_of "$heaptap" record -q --signal none -o none.pb.gz "$targets/snapshot_signal" raise)"
  profile_check none.pb.gz
}

test_another_signal() {
  equal 138 "$(status_of "$heaptap" record -q --signal RTMIN+3 -o other.pb.gz "$targets/snapshot_signal" raise)"
  start "$targets/snapshot_signal" --signal USR2
  kill -USR2 "$pid"
  wait_for 20 test -e out-0001.pb.gz
  finish 0
  profile_check out-0001.pb.gz
}

# start TARGET [OPTION...]: sets pid, and front; a byte on the pipe ends it
start() {
  local target=$1
  shift
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o out.pb.gz "$@" sh -c "echo \$\$ >pid; exec $target tell wait tell" <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  pid=$(cat pid)
}

finish() {
  echo >&9
  exec 9>&-
  local status=0
  wait "$front" || status=$?
  equal "$1" "$status" 'exit status'
  [ ! -s err ] || fail "stderr: $(cat err)"
}

test_a_signal_to_the_process_snapshots_it() {
  start "$targets/snapshot_signal"
  kill -USR1 "$pid"
  wait_for 20 test -e out-0001.pb.gz
  kill -USR1 "$pid"
  wait_for 20 test -e out-0002.pb.gz
  finish 0
  matches 'read 1' output
  profile_check out-0001.pb.gz out-0002.pb.gz
  comment_of out-0001.pb.gz >comments
  matches '^snapshot: 0001, a signal to the process' comments
  at_least 900000 "$(total_of out-0001.pb.gz inuse_space)" 'in use'
}

# The number that a user sees is the front's, which stands in for the program.
test_a_signal_to_the_front_reaches_the_program() {
  start "$targets/snapshot_signal"
  kill -USR1 "$front"
  wait_for 20 test -e out-0001.pb.gz
  finish 0
}

test_a_signal_to_the_sampler_snapshots_every_process() {
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o all/ \
    sh -c "exec 3<&0; $targets/snapshot_signal wait <&3 & $targets/snapshot_signal wait <&3 & wait" \
    <input >output 2>err &
  front=$!
  exec 9>input
  both_ready() { [ "$(grep -c ready output)" = 2 ]; }
  wait_for 20 both_ready
  sampler=$(pgrep -P "$front" heaptap-sampler) || fail 'no sampler'
  kill -USR1 "$sampler"
  both() { [ "$(find all -name '*snapshot_signal*.0001.pb.gz' | wc -l)" = 2 ]; }
  wait_for 20 both
  exec 9>&-
  wait "$front"
  profile_check all/*.pb.gz
  comment_of "$(ls all/*snapshot_signal*.0001.pb.gz | head -n 1)" >comments
  matches '^snapshot: 0001, a signal to the sampler' comments
}

# Nothing has happened for so long that the sampler looks seldom.
test_an_idle_program_is_snapshot() {
  for backend in uprobe copy; do
    [ $backend != uprobe ] || [ "$(id -u)" = 0 ] || continue
    record -q -b $backend -p 1K -i 0 -o idle-$backend/ /usr/bin/python3 -c "
import os, signal, time, glob
held = [bytearray(10000) for _ in range(1000)]
time.sleep(3)
for i in 1, 2, 3:
    os.kill(os.getpid(), signal.SIGUSR1)
    deadline = time.time() + $(seconds 20)
    while not glob.glob('idle-$backend/*.%04d.pb.gz' % i) and time.time() < deadline:
        time.sleep(0.01)"
    profile_check idle-$backend/*.pb.gz
    at_least 9500000 "$(total_of idle-$backend/*.0003.pb.gz inuse_space)" 'in use'
  done
}

# A child that has taken no sample of its own still holds what it inherited.
test_a_forked_child_is_snapshot() {
  record -q -p 1K -i 0 -o child/ /usr/bin/python3 -c "
import os, signal, time, glob
held = [bytearray(10000) for _ in range(1000)]
pid = os.fork()
if pid == 0:
    signal.pause()
    os._exit(0)
os.kill(pid, signal.SIGUSR1)
deadline = time.time() + $(seconds 20)
while not glob.glob('child/*.%d.0001.pb.gz' % pid) and time.time() < deadline:
    time.sleep(0.01)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
print(pid)" >pid
  pid=$(cat pid)
  profile_check child/*."$pid".*.pb.gz
  at_least 9500000 "$(total_of child/*."$pid".0001.pb.gz inuse_space)" 'inherited and in use'
  only child/*."$pid".exit.pb.gz
}

# Real programs that own the signal.
test_nginx_reopens_its_logs() {
  command -v nginx >/dev/null || skip 'no nginx'
  run_nginx() {
    rm -rf www && mkdir -p www/logs
    cat >www/nginx.conf <<CONF
daemon off; master_process on; pid $PWD/www/pid; error_log $PWD/www/logs/error.log;
events {} http { access_log $PWD/www/logs/access.log; client_body_temp_path $PWD/www/b; proxy_temp_path $PWD/www/p;
fastcgi_temp_path $PWD/www/f; uwsgi_temp_path $PWD/www/u; scgi_temp_path $PWD/www/s;
server { listen unix:$PWD/www/socket; } }
CONF
    "$@" nginx -c "$PWD/www/nginx.conf" 2>nginx.err &
    nginx=$!
    wait_for 20 test -s www/pid
    curl -s --unix-socket www/socket http://x/ >/dev/null
    mv www/logs/access.log www/logs/old.log
    kill -USR1 "$(cat www/pid)"
    wait_for 20 test -e www/logs/access.log
    kill -QUIT "$(cat www/pid)"
    wait "$nginx"
  }
  run_nginx
  run_nginx "$heaptap" record -q -o nginx/
  equal 0 "$(find nginx -name '*.0001*' | wc -l)" 'snapshots that nobody asked for'
  profile_check nginx/*.exit.pb.gz
}

# node opens its inspector at SIGUSR1.
test_node_keeps_its_inspector() {
  command -v node >/dev/null || skip 'no node'
  script="process.kill(process.pid, 'SIGUSR1'); setInterval(() => require('inspector').url() && process.exit(3), 20)"
  equal 3 "$(status_of node -e "$script")"
  matches 'Debugger listening' err
  equal 3 "$(status_of "$heaptap" record -q -o node/ node -e "$script")"
  matches 'Debugger listening' err
  equal 0 "$(find node -name '*.0001*' | wc -l)" 'snapshots that nobody asked for'
}
