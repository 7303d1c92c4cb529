# SPDX-License-Identifier: Apache-2.0
# Whoever executes `heaptap record COMMAND` expects in COMMAND what an exec of COMMAND would keep.

# A supervisor that sets itself up as `how` says, executes argv, and is waited for by a process that prints the status.
supervisor() {
  cat >supervisor.py <<'P'
import ctypes, fcntl, os, signal, sys
def open_9(mode):
    """Opens the file as descriptor 9 alone: to close another one of it would unlock it."""
    file = os.open('locked', os.O_CREAT | mode)
    os.dup2(file, 9)
    os.close(file)
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    exec(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print('status', status if status >= 0 else 128 - status)
P
}

# as_natively SETUP COMMAND...: natively and recorded, COMMAND says the same, and ends alike. What it says is in ./recorded.
as_natively() {
  local setup=$1
  shift
  timeout "$(seconds 40)" python3 supervisor.py "$setup" "$@" >native
  timeout "$(seconds 40)" python3 supervisor.py "$setup" "$heaptap" record -q -o out/ "$@" >recorded 2>err
  diff native recorded >&2 || fail "after $setup: natively and recorded; $(cat err)"
  equal '' "$(cat err)"
}

# What systemd, a shell or a supervisor addresses to a process: variables with its pid, and with the inode of its pidfd.
test_variables_with_the_pid() {
  supervisor
  cat >shows.py <<'P'
import os
def inode(pid):
    return str(os.fstat(os.pidfd_open(pid)).st_ino)
own = {'LISTEN_PID', 'WATCHDOG_PID', 'SYSTEMD_EXEC_PID', 'MAINPID', 'MY_OWN_PID'}
print(sorted(name for name in own if os.environ[name] == str(os.getpid())))
print(os.environ['LISTEN_PIDFDID'] == inode(os.getpid()))
print([os.environ[name] for name in ('LISTEN_FDS', 'LISTEN_FDNAMES', 'OTHER_PID', 'PORT') if name in os.environ])
print(os.environ['PIDS'] != str(os.getpid()))
manager, pid = os.read(3, 100).decode().split(',')
print(manager, os.environ['COUNT'] == pid)
P
  as_natively "
for name in 'LISTEN_PID', 'WATCHDOG_PID', 'SYSTEMD_EXEC_PID', 'MAINPID', 'MY_OWN_PID', 'PIDS':
    os.environ[name] = str(os.getpid()) + ('1' if name == 'PIDS' else '')
os.environ.update(LISTEN_FDS='1', COUNT=str(os.getpid()), LISTEN_FDNAMES='a:b', OTHER_PID='1',
                  LISTEN_PIDFDID=str(os.fstat(os.pidfd_open(os.getpid())).st_ino))
r, w = os.pipe()
os.write(w, b'a socket of the manager,%d' % os.getpid())
os.dup2(r, 3)
os.set_inheritable(3, True)" python3 shows.py
  matches "'MAINPID', 'MY_OWN_PID', 'SYSTEMD_EXEC_PID', 'WATCHDOG_PID'" recorded
  matches '^a socket of the manager True$' recorded
  equal 2 "$(grep -c '^True$' recorded)" 'variables that are as they should be'
}

# systemd's own reader of these variables.
test_socket_activation() {
  command -v systemd-socket-activate >/dev/null || skip 'no systemd-socket-activate'
  cat >service.py <<'P'
import os, socket
print(os.environ['LISTEN_PID'] == str(os.getpid()), socket.socket(fileno=3).getsockname())
P
  systemd-socket-activate -l "$PWD/socket" "$heaptap" record -q -o x.pb.gz python3 service.py >out 2>err &
  wait_for 20 test -S socket
  python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("socket")'
  wait $!
  matches "^True .*/socket$" out
  profile_check x.pb.gz
}

# The timer is COMMAND's own: what is left of it is read, it can be cancelled, and it ends COMMAND.
test_timers() {
  supervisor
  cat >cancels.py <<'P'
import signal
for kind in signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF:
    left, interval = signal.setitimer(kind, 0)
    print(0 < left <= 1000, interval)
print(signal.getitimer(signal.ITIMER_REAL))
P
  as_natively '
for kind in signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF:
    signal.setitimer(kind, 1000, 3)' python3 cancels.py
  for kind in REAL VIRTUAL PROF; do
    as_natively "signal.setitimer(signal.ITIMER_$kind, 0.3)" sh -c 'while :; do :; done'
  done
  matches '^status 155$' recorded
  # The front, which passes signals on, has no timer left.
  timeout "$(seconds 40)" python3 supervisor.py 'signal.setitimer(signal.ITIMER_REAL, 3)' "$heaptap" record -q -o out/ python3 -c '
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0)
print(signal.sigtimedwait([signal.SIGALRM], 3.5))' >recorded
  equal 'None status 0' "$(paste -sd ' ' recorded)"
}

# Of a daemon that must not run twice: it locks a file, and executes the program.
locks() {
  cat >holds.py <<'P'
import fcntl, os, struct
def others(kind, start):
    """Whether another process can lock a byte."""
    pid = os.fork()
    if pid == 0:
        file = os.open('locked', os.O_RDWR)
        try:
            fcntl.fcntl(file, fcntl.F_SETLK, struct.pack('hhqqi', kind, os.SEEK_SET, start, 1, 0))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
for start in 0, 9, 10, 100, 200, 249, 250, 1000:
    print(start, 'free to write' if others(fcntl.F_WRLCK, start) else 'locked',
          'free to read' if others(fcntl.F_RDLCK, start) else 'locked')
fcntl.lockf(9, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0) # once more, as a program does that does not know of it
print('again')
P
}

test_record_locks() {
  supervisor
  locks
  for mode in O_RDWR O_WRONLY; do
    as_natively "
open_9(os.$mode)
fcntl.lockf(9, fcntl.LOCK_EX, 10, 0)
fcntl.lockf(9, fcntl.LOCK_EX, 0, 1000)" python3 holds.py
    matches '^9 locked locked' recorded
    matches '^10 free to write free to read' recorded
    matches '^100 free to write free to read' recorded
    matches '^1000 locked locked' recorded
  done
  as_natively "
open_9(os.O_RDWR)
fcntl.lockf(9, fcntl.LOCK_SH, 50, 200)" python3 holds.py
  matches '^249 locked free to read' recorded
  matches '^250 free to write free to read' recorded
}

# Somebody waits for the lock: he does not get it while it is handed over, which is made to take long.
test_a_record_lock_that_another_waits_for() {
  supervisor
  cat >slow.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
int fcntl(int fd, int command, ...) {
	va_list list;
	va_start(list, command);
	void *argument = va_arg(list, void *);
	va_end(list);
	int result = ((int (*)(int, int, void *))dlsym(RTLD_NEXT, "fcntl"))(fd, command, argument);
	if (command == F_SETLK && ((struct flock *)argument)->l_type == F_UNLCK) usleep(300 * 1000);
	return result;
}
C
  gcc -shared -fPIC -o slow.so slow.c
  preload_heaptap "$PWD/slow.so"
  cat >waits.py <<'P'
import fcntl, os
file = os.open('locked', os.O_CREAT | os.O_RDWR)
open('begins', 'w').close()
fcntl.lockf(file, fcntl.LOCK_EX)
print('got it', os.path.exists('ended'), flush=True)
P
  touch locked
  timeout "$(seconds 40)" python3 supervisor.py "
import subprocess, time
open_9(os.O_RDWR)
fcntl.lockf(9, fcntl.LOCK_EX)
waits = subprocess.Popen(['python3', 'waits.py'], close_fds=True, stdout=open('waited', 'w'))
while not any('->' in line for line in open('/proc/locks')):
    time.sleep(0.01)" "$heaptap" record -q -o out/ sh -c 'sleep 0.5; touch ended' >recorded 2>err
  equal '' "$(cat err)"
  wait_for 20 test -s waited
  matches 'got it True' waited
}

# Another process has a lock for reading meanwhile: what cannot be kept is said.
test_a_record_lock_that_cannot_be_handed_over() {
  cat >reads.py <<'P'
import fcntl, os, sys
file = os.open('locked', os.O_CREAT | os.O_RDWR)
fcntl.lockf(file, fcntl.LOCK_EX)
r, w = os.pipe()
if os.fork() == 0:
    other = os.open('locked', os.O_RDWR)
    os.write(w, b'x')
    fcntl.lockf(other, fcntl.LOCK_SH)
    open('reader', 'w').close()
    sys.stdin.read()
    os._exit(0)
os.read(r, 1)
os.set_inheritable(file, True)
os.execvp(sys.argv[1], sys.argv[1:])
P
  mkfifo in
  python3 reads.py "$heaptap" record -q -o out/ sh -c 'until [ -e reader ]; do sleep 0.02; done; echo ran' <in >out.txt 2>err &
  exec 8>in
  wait $!
  exec 8>&-
  equal ran "$(cat out.txt)"
  matches '^heaptap: sh does not get the record lock \(fcntl\) of descriptor [0-9]+: ' err
}

test_scheduling_that_a_fork_resets() {
  need_root
  supervisor
  cat >policy.py <<'P'
import os
print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO, os.sched_getscheduler(0) & os.SCHED_RESET_ON_FORK > 0,
      os.sched_getparam(0).sched_priority, os.nice(0))
P
  chrt -f 1 true 2>/dev/null || skip 'no real-time scheduling here'
  as_natively 'os.setpriority(os.PRIO_PROCESS, 0, 3); os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(7))' \
    python3 policy.py
  matches '^True True 7 3' recorded
  as_natively 'os.setpriority(os.PRIO_PROCESS, 0, -5); os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))' python3 policy.py
  matches '^False True 0 -5' recorded
}

# A signal that came before the exec, and is blocked, is still there.
test_pending_signals() {
  supervisor
  as_natively '
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)' python3 -c '
import signal
print(signal.sigwait([signal.SIGUSR2]))'
}

# What was started before COMMAND in the same process stays the front's child: said with -v.
test_children_that_were_there_before() {
  sh -c "sleep 0.3 & exec $heaptap record -v -o x.pb.gz true" 2>err
  matches '^heaptap: true is not the parent of the children that pid [0-9]+ has: it cannot wait for them$' err
  "$heaptap" record -v -o x.pb.gz true 2>err
  ! grep -q 'is not the parent' err || fail 'said without need'
}

# ---- COMMAND in place of the front

# unshare -p: the first child is to be process 1 there. So COMMAND is no child.
test_another_namespace_of_pids_for_children() {
  need_root
  unshare -p true || skip 'no namespaces of pids'
  for recorded in '' "$heaptap record"; do
    unshare -p $recorded sh -c 'echo "$(ps -o ppid= $$)" >/dev/null; exec readlink /proc/self/ns/pid' 2>err || :
  done >out
  equal 1 "$(sort -u out | wc -l)" 'namespaces of pids'
  unshare -p "$heaptap" record sh -c 'exec sh -c "exit 7"' 2>err && status=0 || status=$?
  equal 7 $status
  equal "heaptap: children of this process are in another namespace of pids (unshare -p without -f); sh runs without being profiled" \
    "$(cat err)"
}

# No process can be forked for COMMAND: what the front has started before is no child of COMMAND, dead or alive.
test_no_child_of_the_front_is_left() {
  cat >shim.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int forks;
pid_t fork(void) {
	if (++forks > atoi(getenv("SHIM_FORKS"))) {
		errno = EAGAIN;
		return -1;
	}
	return ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
}
C
  cat >waits.c <<'C'
#include <stdio.h>
#include <sys/wait.h>
int main(void) { return puts(waitpid(-1, NULL, WNOHANG) < 0 ? "none" : "a child") < 0; }
C
  gcc -shared -fPIC -o shim.so shim.c
  gcc -o waits waits.c
  preload_heaptap "$PWD/shim.so"
  for forks in 1 3; do # heaptap-push; the sampler and heaptap-serve too
    XDG_STATE_HOME=$PWD/state SHIM_FORKS=$forks "$heaptap" record --push pyroscope+http://127.0.0.1:9/ --listen "unix:$PWD/socket" -o out/ \
      ./waits >children 2>err
    matches 'waits runs without being profiled$' err
    equal none "$(cat children)"
  done
  matches '^heaptap: no process can be started: Resource temporarily unavailable; ./waits runs' err
}
