# SPDX-License-Identifier: Apache-2.0
# The heap at its largest: tests/targets/snapshot_peak.c knows when that was and how much.

# compare PROFILE LIMIT: total within LIMIT standard errors of the truth in ./truth; its time is that of the peak if it is
# exact, and of the run if not: the largest of many noisy sums may be any that is nearly as large. The clocks agree to 50 ms.
compare() {
  profile_check "$1"
  comment_of "$1" >comments
  matches '^snapshot: peak, ' comments
  read -r _ bytes from to begin end <truth
  [ "$2" = 0 ] || from=$begin to=$end
  error=$(sed -n 's/^in use at the peak: [0-9]* +- \([0-9]*\) bytes.*/\1/p' comments)
  got=$(total_of "$1" inuse_space)
  awk -v got="$got" -v bytes="$bytes" -v error="$error" -v limit="$2" \
    'BEGIN { d = got - bytes; if (d < 0) d = -d; exit !(d <= limit * error + 20000) }' ||
    fail "peak $got +- $error, truth $bytes"
  at=$(go tool pprof -raw "$1" 2>/dev/null | sed -n 's/^Time: //p')
  awk -v at="$(date -d "${at% UTC}" +%s.%N)" -v from="$from" -v to="$to" 'BEGIN { exit !(at >= from - 0.05 && at <= to + 0.05) }' ||
    fail "at $at, truth from $from to $to"
}

# Slots are used again many times after the peak, at period 1; threads allocate little besides (20 kB of the C library).
exact() {
  record -q -p 1 -i 0 -o "$1-%n.pb.gz" "$targets/snapshot_peak" "$@" >truth
  compare "$1-peak.pb.gz" 0
}

test_exact_spike() {
  exact spike 1000 400
  equal 1600000 "$(total_of spike-peak.pb.gz inuse_space)" 'no more and no less'
  "$readers/oracle" -func spike-peak.pb.gz >functions
  matches $'^func\tinuse_space\t400000\t400000\ttake_base' functions
  matches $'^func\tinuse_space\t1200000\t1200000\ttake_spike' functions
}

test_exact_saw() {
  exact saw 1000 1000
}

test_exact_threads() {
  exact threads 1000 300
}

test_within_standard_errors() {
  for shape in spike saw threads; do
    record -q -p 16K -i 0 -o "$shape-%n.pb.gz" "$targets/snapshot_peak" $shape 1000 5000 >truth
    # The largest of many noisy sums is above the truth by some of their noise: 7, where 5 were for one in a million.
    compare $shape-peak.pb.gz 7
  done
}

# It comes with every snapshot, and is not written again while it stands.
test_with_each_snapshot() {
  record -q -p 1 -i 0 -o out/%n.pb.gz "$targets/snapshot_api" hold 500 snap a drop snap b hold 100 snap c >out.txt
  matches '^snapshot [01]$' out.txt # 0: written, but not within the time that the program waits
  profile_check out/*.pb.gz
  comment_of out/peak.pb.gz >comments
  stamp='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z'
  matches "^snapshot: peak, the heap at its largest \($stamp\), written when the process exited with status 0$" comments
  "$heaptap" report out/peak.pb.gz >screen
  matches "^  peak, the heap at its largest \($stamp\), written when the process exited with status 0$" screen
  at_least 500000 "$(total_of out/peak.pb.gz inuse_space)" peak
}

test_no_peak() {
  record -p 1 -i 0 --no-peak -o out/%n.pb.gz "$targets/snapshot_peak" spike 1000 400 >truth 2>summary
  equal exit.pb.gz "$(ls out)" files
  profile_check out/exit.pb.gz
  grep -q '^ *heaptap: *peak' summary && fail 'a peak in the summary'
  matches 'at end' summary
}
