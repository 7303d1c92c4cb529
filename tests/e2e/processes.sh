# SPDX-License-Identifier: Apache-2.0
# COMMAND's own process, and every other that took a sample, leaves one profile called exit.

count() {
  find . -maxdepth 1 -name "$1" | wc -l
}

test_command_without_samples_has_its_profile() {
  record -q sleep 0.01
  profile_check "$(only heaptap.sleep.*.exit.pb.gz)"
  equal 1 "$(count 'heaptap.*')"
}

test_children_with_samples_have_theirs() {
  record -q -p 4K sh -c "$targets/truth t1 5 0 & $targets/truth t2 5 0 & wait"
  equal 2 "$(count 'heaptap.truth.*.exit.pb.gz')"
  profile_check heaptap.*.pb.gz
}

test_exec_begins_a_new_profile() {
  record -q -p 1 sh -c "exec $targets/truth truth.tsv 5 100"
  equal 1 "$(count 'heaptap.truth.*.exit.pb.gz')"
  profile_check heaptap.*.pb.gz
}

test_death_by_signal_leaves_a_profile() {
  for signal in KILL SEGV ABRT TERM; do
    rm -f heaptap.*
    # A child of ours allocates what can be recognized, then dies.
    status=$(status_of record -q -p 4K python3 -c "
import os, signal
held = [bytearray(100000) for _ in range(200)]
os.kill(os.getpid(), signal.SIG$signal)")
    equal $((128 + $(kill -l $signal))) "$status"
    profile=$(only heaptap.python3*.exit.pb.gz)
    profile_check "$profile"
    at_least 19000000 "$(total_of "$profile" inuse_space)" "in use at SIG$signal"
  done
}

test_immediate_exit_leaves_a_profile() {
  record -q -p 4K python3 -c "
import os
held = [bytearray(100000) for _ in range(200)]
os._exit(0)"
  profile=$(only heaptap.python3*.exit.pb.gz)
  at_least 19000000 "$(total_of "$profile" inuse_space)" 'in use at _exit'
}
