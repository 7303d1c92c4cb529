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

# What COMMAND sends to itself ends it, whoever of it sends it; what is sent to its children ends them.
test_a_program_without_a_handler_behaves_as_without_us() {
  same tell exec tell fork tell fork
  for how in raise thread timer; do
    same tell "$how" tell
    equal 138 "$native" "natively, by $how"
    same handle "$how" tell default tell "$how"
    equal 138 "$native" "natively, by $how"
    same exec tell "$how"
  done
  profile_check same/*.pb.gz
  equal 0 "$(find same -name '*.0001*' | wc -l)" 'snapshots that nobody asked for'
}

# alike COMMAND...: status and output are the same natively and recorded; sets native
alike() {
  native=$(status_of timeout "$(seconds 20)" "$@")
  mv out native.out
  equal "$native" "$(status_of timeout "$(seconds 20)" "$heaptap" record -q -p 1K -o alike/ "$@")" "status of: $*"
  diff native.out out || fail "output differs: $*"
}

test_others_use_the_signal_as_without_us() {
  alike timeout -s USR1 0.2 sleep 25
  equal 124 "$native"
  alike sh -c 'kill -USR1 $$; echo alive'
  equal 138 "$native"
  alike bash -c 'sleep 25 & kill -USR1 $!; wait $!; echo $?; (kill -USR1 $BASHPID; echo alive); echo $?'
  matches 138 out
  alike bash -c 'trap "echo met" USR1; kill -USR1 $$; trap - USR1; kill -USR1 $$; echo alive'
  equal 138 "$native"
  alike /usr/bin/python3 -c "
import os, signal, subprocess, sys, threading
def end(pid):
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
pid = os.fork()
if pid == 0:
    held = [bytearray(10000) for _ in range(1000)] # claims a place in the books
    signal.pause()
os.kill(pid, signal.SIGUSR1)
end(pid)
child = subprocess.Popen(['sleep', '25'])
child.send_signal(signal.SIGUSR1)
print(child.wait(), flush=True)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
end(os.posix_spawn(sys.executable, [sys.executable, '-c', 'import signal; signal.raise_signal(signal.SIGUSR1)'],
    os.environ, setsigdef=[signal.SIGUSR1]))
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
thread = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
thread.start()
thread.join()
print('alive')"
  equal 138 "$native"
  profile_check alike/*.pb.gz
  equal 0 "$(find alike -name '*.0001*' | wc -l)" 'snapshots that nobody asked for'
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

# start TARGET [OPTION...]: sets pid, and front; a byte on the pipe ends it. steps: of snapshot_signal
start() {
  local target=$1
  shift
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o out.pb.gz "$@" sh -c "echo \$\$ >pid; exec $target ${steps:-tell wait tell}" <input >output 2>err &
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

# The number that a user sees is the front's. The program does not notice.
test_a_signal_to_the_front_snapshots_every_process() {
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o all/ \
    sh -c "exec 3<&0; $targets/snapshot_signal poll <&3 & exec $targets/snapshot_signal tell poll tell" <input >output 2>err &
  front=$!
  exec 9>input
  both_ready() { [ "$(grep -c ready output)" = 2 ]; }
  wait_for 20 both_ready
  both() { [ "$(find all -name "*snapshot_signal*.000$1.pb.gz" | wc -l)" = 2 ]; }
  for n in 1 2; do
    kill -USR1 "$front"
    wait_for 20 both $n
  done
  finish 0
  wait_for 20 eval '[ "$(grep -c "poll 1" output)" = 2 ]'
  wait_for 20 eval '[ "$(ls all | grep -c snapshot_signal.*exit)" = 2 ]'
  profile_check all/*.pb.gz
  comment_of "$(ls all/*snapshot_signal*.0001.pb.gz | head -n 1)" >comments
  matches '^snapshot: 0001, a signal to heaptap' comments
}

# It is of the programs that there are when it comes, not of those that the sampler knew at its last look.
test_a_program_that_has_just_come_is_snapshot() {
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 -o all/ sh -c "read go; exec $targets/snapshot_signal poll" <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 eval 'sampler=$(child_of $front heaptap-sampler) && [ -n "$sampler" ]'
  wait_for 20 eval '[ "$(child_of $front sh)" ]'
  kill -STOP "$sampler"
  echo go >&9
  wait_for 20 grep -q ready output
  kill -USR1 "$front"
  wait_for 20 eval '[[ $(sed -n "s/^ShdPnd:[[:space:]]*//p" /proc/$sampler/status) = *[2367abef]?? ]]' # bit 9: USR1
  kill -CONT "$sampler"
  wait_for 20 eval '[ "$(find all -name "*snapshot_signal*.0001.pb.gz")" ]'
  finish 0
  profile_check all/*.pb.gz
}

# A program with a handler does not get it from heaptap, nor one that the signal would end.
test_a_signal_to_the_front_is_not_passed_on() {
  steps='handle poll raise'
  start "$targets/snapshot_signal"
  kill -USR1 "$front"
  wait_for 20 test -e out-0001.pb.gz
  finish 0
  matches 'handled 1,' output
  matches 'poll 1' output
}

# A moment after the start there is nobody yet to take a snapshot of; heaptap does not die of it.
test_a_signal_at_the_start() {
  for delay in 0.01 0.02 0.05 0.1; do
    "$heaptap" record -q -o start.pb.gz sh -c 'sleep 0.3; exit 3' &
    front=$!
    wait_for 20 grep -qE '^SigBlk:.*[2367abef]..$' "/proc/$front/status" # bit 9, SIGUSR1: before, it is the loader's
    sleep $delay
    kill -USR1 "$front"
    status=0
    wait "$front" || status=$?
    equal 3 $status "with $delay"
  done
}

# Children of COMMAND keep the default, unless told otherwise.
test_signal_all_is_for_every_process() {
  mkfifo input
  "$heaptap" record -q -p 1K -i 0 --signal USR1:all -o all/ \
    sh -c "$targets/snapshot_signal wait <&3 & echo \$! >pid; wait \$!; echo \$?" 3<input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  wait_for 20 test -s pid
  kill -USR1 "$(cat pid)"
  wait_for 20 eval '[ -e all/*snapshot_signal.$(cat pid).0001.pb.gz ]'
  finish 0
  equal $'ready\nread 1\n0' "$(cat output)"
  for wrong in none:all USR1: USR1:one USR1:all:all USR1all RTMIN+:all; do
    equal 2 "$(status_of "$heaptap" record --signal $wrong true)" "$wrong"
  done
  equal 138 "$(status_of "$heaptap" record -q --signal RTMIN+1:all -o other.pb.gz "$targets/snapshot_signal" raise)"
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
  matches '^snapshot: 0001, a signal to heaptap' comments
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
    os.system('kill -USR1 %d' % os.getpid()) # its own would end it
    deadline = time.time() + $(seconds 20)
    while not glob.glob('idle-$backend/*.%04d.pb.gz' % i) and time.time() < deadline:
        time.sleep(0.01)"
    profile_check idle-$backend/*.pb.gz
    at_least 9500000 "$(total_of idle-$backend/*.0003.pb.gz inuse_space)" 'in use'
  done
}

# A child that has taken no sample of its own still holds what it inherited.
test_a_forked_child_is_snapshot() {
  record -q -p 1K -i 0 --signal USR1:all -o child/ /usr/bin/python3 -c "
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

# The signal comes while the child still claims its place, for which it goes through all that it inherited.
test_a_child_that_is_just_beginning_is_snapshot() {
  record -q -p 1K -i 0 --signal USR1:all -o young/ /usr/bin/python3 -c "
import os, random, signal, time, glob
held = [bytearray(1000) for _ in range(100000)]
for round in range(8):
    pid = os.fork()
    if pid == 0:
        first = bytearray(100000)
        signal.pause()
        os._exit(0)
    time.sleep(random.random() / 50)
    os.kill(pid, signal.SIGUSR1)
    deadline = time.time() + $(seconds 20)
    while not glob.glob('young/*.%d.0001.pb.gz' % pid) and time.time() < deadline:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert glob.glob('young/*.%d.0001.pb.gz' % pid), 'no snapshot in round %d' % round"
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
  equal 3 "$(status_of node --inspect-port=0 -e "$script")"
  matches 'Debugger listening' err
  equal 3 "$(status_of "$heaptap" record -q -o node/ node --inspect-port=0 -e "$script")"
  matches 'Debugger listening' err
  equal 0 "$(find node -name '*.0001*' | wc -l)" 'snapshots that nobody asked for'
}
