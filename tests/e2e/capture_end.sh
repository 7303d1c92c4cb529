# SPDX-License-Identifier: Apache-2.0
# A sampler ends when there is nobody left to profile, whatever has happened to the others.

# start COMMAND...: heaptap in the background; sets front and sampler
start() {
  "$heaptap" record -q "$@" 2>err &
  front=$!
  wait_for 10 eval '[ -n "$(child_of $front heaptap-sampler)" ]'
  sampler=$(child_of $front heaptap-sampler)
}

# find_sampler: of the background job, a shell that has changed its user; sets sampler
find_sampler() {
  wait_for 10 eval 'front=$(child_of $job heaptap) && [ -n "$front" ] && [ -n "$(child_of $front heaptap-sampler)" ]'
  sampler=$(child_of "$front" heaptap-sampler)
}

sampler_gone() {
  [ ! -e "/proc/$sampler/exe" ] # a zombie has none either
}

# is_profiled PID: the library has its region, and the constructor is done: the program sleeps
is_profiled() { grep -q memfd:heaptap "/proc/$1/maps" && grep -q '^State:.*S' "/proc/$1/status"; }

# killed_front COMMAND...: its sampler is told of no end; `seen` is a test of COMMAND's number that is to hold before
killed_front() {
  start -p 1 -o "$1.pb.gz" "$@"
  name=$1
  wait_for 10 eval '[ -n "$(child_of $front "$name")" ]'
  command=$(child_of $front "$name")
  wait_for 10 "$seen" "$command"
  kill -KILL $front
  wait_for 20 eval '[ ! -e /proc/$command/exe ]'
  wait_for 20 sampler_gone
}

test_front_killed() {
  seen=is_profiled
  killed_front sleep 10000
  profile_check sleep.pb.gz
  comment_of sleep.pb.gz | grep -q 'exited with status 0' && fail 'claims a status that nobody told'
  true
}

# Without a profile of its own, COMMAND is nobody that the sampler would see go.
test_front_killed_and_command_not_profiled() {
  cat >silent.c <<'C'
#include <unistd.h>
int main(void) { for (;;) pause(); }
C
  gcc -static -o silent silent.c || skip 'no static libc'
  export PATH=$PWD:$PATH
  seen=true
  killed_front silent
}

test_target_gives_numbers_of_others() {
  for backend in copy breakpoint; do
    rm -rf out
    mkfifo gate
    start -b $backend -p 1 -o out/ sh -c 'read -r sampler <gate; exec "$@" 1 "$PPID" "$sampler"' sh "$targets/capture_hostile" lie
    echo "$sampler" >gate
    wait_for 20 sampler_gone
    status=0
    wait $front || status=$?
    equal 0 $status "$backend: status; $(cat err)"
    rm gate
  done
}

# A process that hides its maps: our own user's, but older than the session.
test_target_gives_the_number_of_an_undumpable_process() {
  stage capture_hostile capture_process
  mkdir -m 777 place
  cd place
  cat >hide.c <<'C'
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { prctl(PR_SET_DUMPABLE, 0); write(1, "", 1); pause(); }
C
  gcc -w -o hide hide.c
  mkfifo hidden
  unprivileged ./hide >hidden &
  hide=$!
  head -c 1 hidden >/dev/null
  hide=$(pgrep -P $hide -x hide || echo $hide)
  mkfifo -m 666 gate
  unprivileged "$heaptap" record -q -b copy -p 1 -o out/ sh -c 'read -r go <gate; exec "$@"' sh \
    "$targets/capture_hostile" lie "$hide" 1 2>err &
  job=$!
  find_sampler
  echo >gate
  wait_for 20 sampler_gone
  wait $job || fail "status $?: $(cat err)"
  kill "$hide"
}

# The writer's children cannot be forked: the profile is given up, COMMAND's status is not kept back for ever.
test_no_process_for_the_writer() {
  stage capture_survive
  mkdir -m 777 place
  cd place
  unprivileged "$heaptap" record -p 1K -o out/ "$targets/capture_survive" burst truth 1000 10 2>err &
  job=$!
  wait_for 10 test -s truth
  find_sampler
  unprivileged prlimit --pid "$sampler" --nproc=1:1
  touch truth.go
  wait_for 10 test -s truth.done
  touch truth.end
  wait_for 60 sampler_gone
  wait $job || fail "status $?: $(cat err)"
  matches 'not written: .*(Resource temporarily unavailable|EAGAIN)' err
  matches '^heaptap: writing 1 of 1 profiles$' err # whoever waits is told for what
}

# It has ended before the sampler looks for the first time, and nothing else happens for long.
test_end_before_the_first_look() {
  mkfifo begin end
  "$heaptap" record -q -b copy -p 1 -i 0 -o out/ \
    sh -c "read word <begin; $targets/truth /dev/null 1 20; : >over; read word <end" &
  front=$!
  # COMMAND runs once the sampler is ready.
  wait_for 20 eval 'sampler=$(child_of $front heaptap-sampler); [ -n "$sampler" ] && [ -n "$(child_of $front sh)" ]'
  kill -STOP "$sampler"
  echo go >begin
  wait_for 20 test -e over
  kill -CONT "$sampler"
  wait_for 20 eval 'ls out/heaptap.truth.*.exit.pb.gz >/dev/null 2>&1'
  echo go >end
  wait $front
  profile_check out/heaptap.truth.*.exit.pb.gz
}
