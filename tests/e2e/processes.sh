# SPDX-License-Identifier: Apache-2.0
# COMMAND's own process, and every other that took a sample, leaves one profile called exit.

count() {
  find . -maxdepth 1 -name "$1" | wc -l
}

test_command_without_samples_has_its_profile() {
  record -q -p 1024G sleep 0.01 # at the default period, one run in some hundred has a sample, and so a peak
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

# Linux 6.18 turns a uprobe on a five-byte nop into a call to a page that a forked child does not have.
test_forked_children_live() {
  for backend in uprobe breakpoint copy; do
    [ $backend != uprobe ] || [ "$(id -u)" = 0 ] || continue
    record -q -b $backend -p 4K -o $backend/ python3 -c "
import os
held = [bytearray(100000) for _ in range(200)]
for i in range(20):
    pid = os.fork()
    if pid == 0:
        more = [bytearray(100000) for _ in range(20)]
        os._exit(7)
    if os.waitpid(pid, 0)[1] != 7 << 8:
        raise SystemExit('a child died')" || fail "$backend: a forked child died"
    profile_check $backend/*.pb.gz
  done
}

test_many_processes_at_once() {
  record -q -p 16K -o all/ sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do $targets/truth /dev/null 3 500 & done; wait"
  equal 10 "$(find all -name 'heaptap.truth.*.exit.pb.gz' | wc -l)"
  profile_check all/*.pb.gz
}

# Of a hundred children the terminal gets a table of ten, of COMMAND and of a sum, and the disk every profile.
test_a_crowd_is_summed_up() {
  record -p 1 -i 0 --no-peak -o out/ sh -c 'i=0; while [ $i -lt 100 ]; do /bin/ls /dev/null; i=$((i + 1)); done' >ls.txt 2>summary
  # On a busy machine some find the sampler without a region for them; they are counted.
  missed=$(missed_programs summary)
  equal 101 "$(($(find out -name '*.pb.gz' | wc -l) + missed))" profiles
  equal 12 "$(grep -cE '(exit.pb.gz|added up)$' <(grep -v 'show' summary))" rows
  matches "and $((90 - missed)) more, added up" summary
}
