# SPDX-License-Identifier: Apache-2.0
# Profiles that cannot be written: one clear line, counted, tried again, and nothing of it reaches the target.

# held OPTION...: a program that holds what it allocates until its input ends
held() {
  mkfifo input 2>/dev/null || :
  "$heaptap" record -i 60s -p 1K "$@" "$targets/snapshot_signal" wait <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  pid=$(child_of "$front" snapshot_signal)
}

finish() {
  exec 9>&-
  wait "$front" || fail 'the target did not end well'
  matches 'read 0' output
}

lines() {
  grep -c "$1" err || :
}

test_full_disk() {
  need_root
  mkdir small
  mount -t tmpfs -o size=8m none small 2>/dev/null || skip 'no tmpfs can be mounted'
  trap 'umount small' EXIT
  dd if=/dev/zero of=small/ballast bs=1k count=8188 2>/dev/null
  held -i 50ms -o small/%n.pb.gz
  wait_for 20 grep -q 'No space left on device' err
  sleep 0.3 # several more fail
  equal 1 "$(lines 'profile not written')" 'lines about it'
  equal 1 "$(status_of "$heaptap" snapshot "$pid")" 'status of a request'
  mv out answer
  rm small/ballast
  wait_for 20 grep -q 'writing profiles works again' err
  finish
  equal 0 "$(find small -name '*.tmp*' -o -name '.*.pb.gz*' | wc -l)" 'left behind'
  profile_check small/exit.pb.gz
  comment_of small/exit.pb.gz >comments
  written=$(sed -n 's/.*, \([0-9]*\) not written.*/\1/p' comments)
  at_least 2 "${written:-0}" 'counted failures'
}

test_folder_that_vanishes_comes_back() {
  held -q -i 50ms -o out/deep/%n.pb.gz
  wait_for 20 test -e out/deep/0002.pb.gz
  wait_for 20 rm -rf out # a profile may be written between the end of the files and that of the folder
  again() { [ "$(find out -name '0*.pb.gz' 2>/dev/null | wc -l)" -ge 2 ]; }
  wait_for 20 again
  finish
  profile_check out/deep/exit.pb.gz
}

test_folder_that_must_not_be_written() {
  stage snapshot_signal
  mkdir -m 777 closed && chmod 777 .
  command() {
    unprivileged "$heaptap" record -i 50ms -p 1K -o closed/%n.pb.gz "$targets/snapshot_signal" wait
  }
  mkfifo input
  command <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 test -s closed/0001.pb.gz
  rm -f closed/*
  chmod 555 closed # of a folder that cannot be written from the start, record says so and does not start COMMAND
  wait_for 20 grep -q 'profile not written: closed/[0-9]*.pb.gz: Permission denied' err
  chmod 777 closed
  wait_for 20 grep -q 'writing profiles works again' err
  exec 9>&-
  wait "$front"
  profile_check closed/exit.pb.gz
}

# The exit profile's name is the longest that there can be, the numbered ones' are longer: said once with its cause, and
# who asks is told so at once.
# Nothing tries again after the last one, so -q does not silence it.
test_the_last_profile_is_not_lost_in_silence() {
  stage snapshot_signal
  mkdir -m 777 closed && chmod 777 .
  mkfifo input
  unprivileged "$heaptap" record -q -i 0 -p 1K -o closed/%n.pb.gz "$targets/snapshot_signal" wait <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  chmod 555 closed
  finish
  equal 'heaptap: profile not written: closed/exit.pb.gz: Permission denied' "$(cat err)" 'what is said'
}

# A count that no profile can have any more is in the last line.
test_an_output_that_never_comes_back_is_counted() {
  held -q -i 0 -o out/%n.pb.gz
  rm -rf out && echo >out # a file where the folder was, which no user may write to
  for attempt in 1 2 3; do
    equal 1 "$(
      "$heaptap" snapshot "$pid" >/dev/null 2>&1
      echo $?
    )" "status of request $attempt"
  done
  finish
  matches '^heaptap: profile not written: out/exit\.pb\.gz: Not a directory; snapshots not written before it: 3$' err
}

test_name_that_gets_too_long() {
  name=$(printf 'd%.0s' {1..99})/
  while [ ${#name} -lt 3900 ]; do name+=$name; name=${name:0:3900}; done
  name+=$(printf 'e%.0s' {1..99})/$(printf 'f%.0s' {1..86}).pb.gz
  equal 4092 ${#name} 'length of the name'
  held -i 50ms -o "$name"
  wait_for 20 grep -q "no snapshot of pid $pid: File name too long" err
  status=0
  timeout "$(seconds 20)" "$heaptap" snapshot "$pid" 2>answer || status=$?
  equal 1 $status 'status of a request'
  matches "pid $pid: File name too long" answer
  equal 1 "$(lines 'File name too long')" 'lines about it'
  equal 0 "$(lines 'out of memory')" 'lines with a wrong cause'
  finish
}
