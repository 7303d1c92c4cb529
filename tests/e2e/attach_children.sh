# SPDX-License-Identifier: Apache-2.0
# `heaptap record -P PID` and `heaptap attach PID`: the children that are there, such as the workers of a server.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# A master that has forked workers. For each line, each worker keeps the line's number of MiB in blocks of 16 KiB and
# says "done"; "fork" makes another worker.
prefork='import os, sys
def say(*words): # a line at once: several processes write into one file
    os.write(1, (" ".join(map(str, words)) + "\n").encode())
def work(feed):
    kept = []
    say("worker", os.getpid())
    for line in os.fdopen(feed):
        kept += [b"x" * (16 << 10) for i in range(64 * int(line))]
        say("done", os.getpid())
    os._exit(0)
feeds = []
def fork():
    out, into = os.pipe()
    if os.fork() == 0:
        for feed in feeds: os.close(feed)
        os.close(into)
        os.close(0)
        work(out)
    os.close(out)
    feeds.append(into)
for i in range(int(sys.argv[1])): fork()
say("ready")
for line in sys.stdin:
    if line == "fork\n": fork()
    else:
        for feed in feeds: os.write(feed, line.encode())
for feed in feeds: os.close(feed)
for feed in feeds: os.wait()
'

# serving WORKERS: sets target, the master, and workers
serving() {
  need_root
  running /usr/bin/python3 -uc "$prefork" "$1"
  wait_for 20 said_times '^worker' "$1"
  workers=$(sed -n 's/^worker //p' said)
}

# held PID: the bytes that its profile has in use
held() {
  local profile
  profile=$(only p/heaptap.python3*."$1".detach.pb.gz)
  profile_check "$profile"
  "$heaptap" report --json "$profile" | python3 -c 'import json, sys; print(int(json.load(sys.stdin)["totals"]["inuse_space"]["all"]))'
}

# all_attached: the line at the end of attaching
all_attached() {
  said_so() { grep -q '^heaptap: attached to ' log || ! kill -0 $sampler 2>/dev/null; }
  wait_for 60 said_so
}

test_workers_are_recorded() {
  serving 3
  attach -p 1
  all_attached
  matches "^heaptap: attached to python3[.0-9]* \\(pid $target\\) and its 3 children\$" log
  echo 4 >&7
  wait_for 30 said_times '^done' 3
  detach
  for worker in $workers; do
    [ "$(held "$worker")" -ge $((4 << 20)) ] || fail "worker $worker: $(held "$worker") bytes"
  done
  equal 1 "$(grep -c 'attached; paused one thread' log)" 'lines about attaching'
  finish
}

# The same command by its other name, with options behind the pid.
test_attach_is_a_command() {
  serving 1
  "$heaptap" attach "$target" -o p/ -p 1 2>log 7>&- &
  sampler=$!
  all_attached
  matches "^heaptap: attached to python3[.0-9]* \\(pid $target\\) and its child\$" log
  echo 4 >&7
  wait_for 30 said_times '^done' 1
  detach
  [ "$(held "$workers")" -ge $((4 << 20)) ] || fail "$(held "$workers") bytes"
  finish
}

# doctor says that there are some.
test_doctor_counts_them() {
  serving 2
  status_of "$heaptap" doctor "$target" >/dev/null
  matches "it has 2 children, which heaptap attach $target records too" out
  finish
}

test_only_the_one() {
  serving 2
  attach -p 1 --children=no
  echo 4 >&7
  wait_for 30 said_times '^done' 2
  for worker in $workers; do
    ! grep -q heaptap "/proc/$worker/maps" || fail "worker $worker is recorded too"
  done
  detach
  ! grep 'children' log || fail 'nobody asked for them'
  finish
}

# A list stays a list: what is named is no child of another.
test_lists() {
  serving 2
  # shellcheck disable=SC2086
  set -- $workers
  "$heaptap" record -P "$target,$1" -o p/ -p 1 2>log 7>&- &
  sampler=$!
  all_attached
  matches "^heaptap: attached to python3[.0-9]* \\(pid $target\\) and its child\$" log
  equal 2 "$(grep -c 'attached; paused one thread' log)" 'processes that were named'
  detach
  finish
}

# What is forked later has the hooks already.
test_children_of_later() {
  serving 1
  attach -p 1
  all_attached
  echo fork >&7
  wait_for 20 said_times '^worker' 2
  echo 4 >&7
  wait_for 30 said_times '^done' 2
  detach
  later=$(sed -n 's/^worker //p' said | tail -n 1)
  [ "$(held "$later")" -ge $((4 << 20)) ] || fail "worker $later: $(held "$later") bytes"
  finish
}

# Forking all the time while it is attached to: each child is there once, whoever was first.
test_forks_meanwhile() {
  need_root
  running /usr/bin/python3 -uc 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for i in range(40):
    if os.fork() == 0:
        kept = [b"x" * (16 << 10) for i in range(64)]
        os._exit(0)
print("done", flush=True)
sys.stdin.read()'
  attach -p 1 --min-samples 1
  wait_for 60 said_times done 1
  detach
  profile_check p/*.pb.gz
  finish
}

# A child that cannot be attached to is named, with the reason; the others are recorded, and the status is that of a
# success.
test_a_child_that_cannot_be_attached_to() {
  need_root
  printf '#include <unistd.h>\nint main(void) { return pause(); }\n' >still.c
  gcc -static -o still still.c
  running /usr/bin/python3 -uc 'import subprocess, sys
child = subprocess.Popen(["./still"])
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept += [b"x" * (16 << 10) for i in range(64)]
    print("done", flush=True)
child.kill()
child.wait()'
  child=$(pgrep -P "$target" still)
  attach -p 1
  all_attached
  matches "^heaptap: pid $child \\(still\\), a child of pid $target, is statically linked" log
  matches "^heaptap: attached to python3[.0-9]* \\(pid $target\\) and not its child\$" log
  echo >&7
  wait_for 20 said_times done 1
  detach
  [ "$(held "$target")" -ge $((1 << 20)) ] || fail "$(held "$target") bytes"
  finish
}

# The one that was named cannot be attached to, such as a static init of a container: what it runs is recorded.
test_the_children_of_one_that_cannot_be_attached_to() {
  need_root
  cat >init.c <<'C'
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char *argv[])
{
	if (fork() == 0)
		execv(argv[1], argv + 1);
	return wait(NULL) < 0;
}
C
  gcc -static -o init init.c
  running ./init /usr/bin/python3 -uc "$prefork" 1
  wait_for 20 said_times '^worker' 1
  worker=$(sed -n 's/^worker //p' said)
  "$heaptap" record -P "$target" -o p/ -p 1 2>log 7>&- &
  sampler=$!
  all_attached
  matches "^heaptap: pid $target is statically linked" log
  matches "^heaptap: attached to the 2 children of init \\(pid $target\\)\$" log
  echo 4 >&7
  wait_for 30 said_times '^done' 1
  kill -TERM $sampler
  status=0
  wait $sampler || status=$?
  equal 1 $status 'status: what was named was not recorded'
  [ "$(held "$worker")" -ge $((4 << 20)) ] || fail "$(held "$worker") bytes"
  finish
}

# Events, without a heap.
test_events_of_children() {
  serving 2
  "$heaptap" record --no-heap -e page-faults/1 -P "$target" -o p/ 2>log 7>&- &
  sampler=$!
  all_attached
  grep -q 'its 2 children' log || skip "no perf events here: $(cat log)"
  echo 16 >&7
  wait_for 30 said_times '^done' 2
  detach
  for worker in $workers; do
    profile=$(only p/heaptap.python3*."$worker".page-faults*.pb.gz)
    "$heaptap" check "$profile" || fail 'not valid'
    "$heaptap" report "$profile" >report
    matches '^  every occurrence of page_faults recorded$' report
  done
  finish
}

# The sampler is no child of the shell that it records, although it is.
test_not_ourselves() {
  need_root
  mkfifo in
  bash -c 'echo ready; echo $$ >pid; read -r line <in; "$1" record -q -P $$ -o p/ --duration 200ms 2>log; echo status $? >>said; read -r line <in' \
    bash "$heaptap" >said &
  shell=$!
  wait_for 20 test -s pid
  echo >in
  wait_for 60 grep -q '^status' said
  equal 'status 0' "$(grep status said)" "$(cat log)"
  echo >in
  wait $shell || true
}
