# SPDX-License-Identifier: Apache-2.0
# `heaptap record -e EVENT -P`: perf events of processes that run already.
# timeout: 180

. "$HEAPTAP_TOP/tests/events.sh"

# A process that runs, threads coming and going all the time: each of them once.
test_attach() {
  "$targets/events_churn" >ready &
  target=$!
  wait_for 20 grep -q ready ready
  stolen_before=$(stolen)
  before=$(spent)
  "$heaptap" record -v --no-heap -e cpu-clock@4999 -P "$target" -o a.gz 2>err &
  front=$!
  wait_for 20 grep -q sampling err
  attached=$(spent)
  enough() { [ $(($(spent) - attached)) -gt 1000000000 ]; }
  wait_for 60 enough
  kill -STOP "$target"
  wait_for 20 grep -q '^State:.*stopped' "/proc/$target/status"
  after=$(spent)
  kill -KILL "$target"
  wait "$front"
  profile=$(only a-cpu-clock-exit.gz)
  events_check "$profile"
  # Twice would be more than there was. A tick of the kernel's is 10 ms, of which each thread may owe one.
  counted=$(counted "$profile")
  at_least $(((after - attached) * 95 / 100)) "$counted" 'ns counted'
  at_least "$counted" $(((after - before) * 105 / 100 + 50000000 + $(stolen) - stolen_before)) 'ns that there were'
  # Each thread ends before its next sample is due: of 3 ms that are 0.1 on average.
  at_least $((counted * 85 / 100)) \
    "$(($(reached "$profile" cpu '^(churn|\[lost samples\])$') + $(stolen) - stolen_before))" 'ns in churn'
}

# The parent of a vfork() waits in a state in which it might be creating a thread.
test_attach_to_what_cannot_be_told() {
  cat >waits.c <<'EOF'
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(open("ready", O_CREAT | O_WRONLY, 0600));
		for (;;)
			pause();
	}
	return 0;
}
EOF
  gcc -w -o waits waits.c
  ./waits &
  target=$!
  wait_for 20 test -e ready
  "$heaptap" record -v --no-heap -e cpu-clock@499 -P "$target" -o a.gz 2>err &
  front=$!
  wait_for 20 grep -qs sampling err
  kill -KILL "$target"
  wait "$front"
  events_check a-cpu-clock-exit.gz
  comment_of a-cpu-clock-exit.gz >comments
  matches '^after 2 s it was open whether each thread is counted' comments
}

# Nothing happened: that is a profile too. Its name is the one that it was called by.
test_attach_to_an_idle_process() {
  ln -s "$(command -v sleep)" dozer
  ./dozer 10000 &
  target=$!
  wait_for 20 grep -q dozer /proc/$target/comm
  # Once a second: its end is not to be seen, however long it takes.
  PATH=$PWD:$PATH "$heaptap" record -v --no-heap -e cpu-clock@1 -P "$target" -o a.gz 2>err &
  front=$!
  wait_for 20 grep -q sampling err
  kill "$target"
  wait "$front"
  events_check a-cpu-clock-exit.gz
  equal 0 "$(total_of a-cpu-clock-exit.gz samples)" samples
  comment_of a-cpu-clock-exit.gz >comments
  matches "^pid=$target comm=dozer " comments
}

test_attach_ends_by_ctrl_c() {
  "$split" functions 10000 >/dev/null &
  target=$!
  # The shell has its jobs in the background ignore SIGINT.
  env --default-signal=INT "$heaptap" record -v --no-heap -e cpu-clock@499 -P "$target" -i 100ms -o a.gz 2>err &
  front=$!
  wait_for 20 test -e a-cpu-clock-0002.gz
  kill -INT "$front"
  wait "$front"
  kill -0 "$target" || fail 'the process is gone'
  kill "$target"
  events_check a-cpu-clock-0002.gz a-cpu-clock-exit.gz
  comment_of a-cpu-clock-exit.gz | grep -q 'the process is still running' || fail 'why it ended'
}

# nohup, and SIGINT in a shell's background: what we were started to ignore stays ignored; SIGTERM ends it.
test_attach_outlives_the_signals_it_was_to_ignore() {
  "$split" functions 10000 >/dev/null &
  target=$!
  env --ignore-signal=HUP,INT "$heaptap" record -v --no-heap -e cpu-clock@499 -P "$target" -i 100ms -o a.gz 2>err &
  front=$!
  wait_for 20 test -e a-cpu-clock-0002.gz
  kill -HUP "$front"
  kill -INT "$front"
  # A signal that it took would have ended it before it wrote so many more.
  last=$(echo a-cpu-clock-0*.gz | wc -w)
  wait_for 60 test -e "$(printf 'a-cpu-clock-%04d.gz' $((last + 3)))"
  kill -TERM "$front"
  wait "$front" || fail 'it was killed'
  kill "$target"
  events_check a-cpu-clock-exit.gz
}
