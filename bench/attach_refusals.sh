# SPDX-License-Identifier: Apache-2.0
# Of bench/attach.sh: processes that cannot be attached to.

# refuse WHAT PID [COMMAND...]: what record and doctor say, by COMMAND (another user)
refuse() {
  local what=$1 pid=$2
  shift 2
  echo "$what"
  "$@" "$heaptap" record -q -o "$work/p/" -P "$pid" --duration 1ms 2>&1 | sed 's/^/  record: /'
  "$@" "$heaptap" doctor "$pid" 2>&1 | grep -m 1 "pid $pid\|process $pid" | sed 's/^ */  doctor: /'
}

rest_c() {
  cat >rest.c <<'C'
#include <unistd.h>
int main(void) { return write(1, "rests\n", 6) != 6 || pause(); }
C
}

# refuse_program WHAT COMMAND...: while it rests
refuse_program() {
  local what=$1
  shift
  rm -f said
  "$@" >said 2>said.err &
  target=$!
  until_true 20 says 'rests\|ready' || { echo "$what: $(cat said.err)"; return; }
  refuse "$what" $target
  kill -KILL $target
  wait $target 2>/dev/null
}

refusals() {
  rest_c
  cp "$heaptap" "$build/libheaptap.so" "$build/libheaptap-attach.so" .
  chmod 755 heaptap ./*.so
  heaptap=$work/heaptap
  mkdir -m 777 p
  echo "kernel.yama.ptrace_scope: $(cat /proc/sys/kernel/yama/ptrace_scope 2>&1)"
  refuse 'gone' 4194300
  [ ! -d /proc/2 ] || refuse 'kernel thread' 2
  sleep 1000 &
  local other=$!
  until_true 20 test -e /proc/$other/exe
  refuse "another user's" $other setpriv --reuid 65534 --regid 65534 --clear-groups
  refuse 'root without CAP_SYS_PTRACE, a process with more capabilities' $other setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace
  strace -o /dev/null -p $other &
  local tracer=$!
  traced() { ! grep -q '^TracerPid:.0$' /proc/$other/status; }
  until_true 20 traced
  refuse 'traced by another' $other
  kill -KILL $tracer
  wait $tracer 2>/dev/null
  kill -STOP $other
  stopped() { grep -q '^State:.*T (' /proc/$other/status; }
  until_true 20 stopped
  refuse 'stopped by a signal' $other
  kill -KILL $other
  /usr/bin/python3 -c 'import os, time
child = os.fork()
if not child: os._exit(0)
print(child, flush=True)
time.sleep(1000)' >child &
  local parent=$!
  zombie() { [ -s child ] && grep -q '^State:.*Z (' "/proc/$(cat child)/status"; }
  until_true 20 zombie
  refuse 'zombie' "$(cat child)"
  kill -KILL $parent
  for compiler in 'gcc -static' musl-gcc 'gcc -fsanitize=address' 'gcc -fsanitize=thread'; do
    $compiler -o rest rest.c && refuse_program "$compiler" ./rest
  done
  printf '.globl _start\n_start: movl $4,%%eax; movl $1,%%ebx; movl $text,%%ecx; movl $6,%%edx; int $0x80\n1: movl $29,%%eax; int $0x80; jmp 1b\n.data\ntext: .ascii "rests\\n"\n' >rest.s
  gcc -m32 -nostdlib -static -o rest rest.s && refuse_program '32 bit' ./rest
  aarch64-linux-gnu-gcc -static -o rest rest.c && refuse_program 'aarch64, by qemu-aarch64' qemu-aarch64 ./rest
  gcc -o rest rest.c
  cat >filter.py <<'PY'
import ctypes, struct, sys, time
libc = ctypes.CDLL(None)
if sys.argv[1] == 'dumpable': libc.prctl(4, 0, 0, 0, 0)
if sys.argv[1] == 'filter':
    program = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)
    memory = ctypes.create_string_buffer(program)
    filter = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 1, ctypes.addressof(memory)))
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, filter, 0, 0) != 0: sys.exit(3)
print('ready', flush=True)
time.sleep(1000)
PY
  mkfifo never
  exec 8<>never # a job's standard input would be /dev/null
  refuse_program 'seccomp filter' /usr/bin/python3 filter.py filter
  cat >strict.c <<'C'
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { char c; return write(1, "rests\n", 6) != 6 || prctl(PR_SET_SECCOMP, 1) || read(8, &c, 1); }
C
  gcc -o strict strict.c && refuse_program 'seccomp, strict' ./strict
  setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 filter.py dumpable >dumpable &
  other=$!
  until_true 20 grep -q ready dumpable
  refuse 'not dumpable, by its own user' $other setpriv --reuid 65534 --regid 65534 --clear-groups
  kill -KILL $other
  mkdir -p root/lib64 root/lib/x86_64-linux-gnu
  cp /lib64/ld-linux-x86-64.so.2 root/lib64/
  cp /lib/x86_64-linux-gnu/libc.so.6 root/lib/x86_64-linux-gnu/
  cp rest root/
  refuse_program 'a root without /proc (not refused)' chroot root /rest
  "$heaptap" record -q -o recorded/ sleep 1000 &
  local front=$!
  profiled() { other=$(pgrep -P "$(pgrep -P $front -x heaptap-parent)" -x sleep) && grep -qs /memfd:heaptap "/proc/$other/maps"; }
  until_true 20 profiled
  refuse 'profiled already' "$other"
  sampler=$(pgrep -P $front -f heaptap-sampler || pgrep -P $front heaptap)
  kill -KILL $sampler
  sleep 0.5
  refuse 'profiled, its sampler killed' "$other"
  kill "$other"
  ./rest >said &
  target=$!
  until_true 20 says rests
  "$heaptap" record -q -P $target -o p/ 2>log &
  sampler=$!
  attached() { grep -qs /memfd:heaptap "/proc/$target/maps"; }
  until_true 60 attached
  sleep 0.5
  refuse 'attached already' $target
  kill -KILL $sampler
  wait $sampler 2>/dev/null
  refuse 'attached, its sampler killed' $target
  "$heaptap" detach $target
  "$heaptap" detach $target
  kill -KILL $target
  "$targets/attach_busy" 1 still >said &
  target=$!
  until_true 20 says ready
  refuse 'a thread' "$(ls /proc/$target/task | tail -1)"
  kill -KILL $target
}
