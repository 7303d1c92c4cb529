# SPDX-License-Identifier: Apache-2.0
# What tests of perf events share.

split=$targets/events_split

events_check() {
  local profile
  for profile; do
    [ -s "$profile" ] || fail "no profile $profile"
    "$readers/check_profile" --strict "$profile" >check.log 2>&1 || { cat check.log >&2; fail "$profile is not valid"; }
    "$readers/oracle" "$profile" >check.log 2>&1 || { cat check.log >&2; fail "pprof's library refuses $profile"; }
    go tool pprof -top "$profile" >check.log 2>&1 || { cat check.log >&2; fail "go tool pprof refuses $profile"; }
  done
}

# reached PROFILE TYPE REGEX: the sum of samples whose stack has such a function
reached() {
  "$readers/oracle" -reach "$3" "$1" | awk -F '\t' -v type="$2" '$1 == "reach" && $2 == type { n = $3 } END { printf "%.0f\n", n }'
}

# within WANTED_SHARE SAMPLES LOST OF WHAT: a share of a number of samples, of which some were lost and may be anybody's.
# 5 standard errors of a binomial are exceeded once in 1.7 million runs; equal intervals and turns of random lengths
# (events_split.c) have less than half of its error. One sample more is due at either end.
within() {
  awk -v p="$1" -v k="$2" -v lost="$3" -v n="$4" 'BEGIN { e = sqrt(n * p * (1 - p))
    printf "%d and %d lost of %d samples, wanted %.1f +- %.1f\n", k, lost, n, n * p, e
    exit !(n > 100 && lost < n / 2 && k <= n * p + 5 * e + 1 && k + lost >= n * p - 5 * e - 1) }' >within || fail "$5: $(cat within)"
}

# lost PROFILE: samples
lost() {
  reached "$1" samples '^\[lost samples\]$'
}

# What the host has kept of all processors since the machine started, in ns. The kernel takes it for a program's time when
# it counts a clock, but neither when it counts the program's time nor when it samples.
stolen() {
  awk '$1 == "cpu" { printf "%.0f\n", $9 * 10000000 }' /proc/stat
}

# counted PROFILE: ns or events of all processes, by the kernel's own count
counted() {
  comment_of "$1" | sed -n 's/.*the kernel counted \([0-9]*\).*/\1/p' | tail -n 1
}

# spent: CPU time of $target and its threads, in ns, to 10 ms
spent() {
  awk '{ printf "%.0f\n", ($14 + $15) * 10000000 }' "/proc/$target/stat"
}

# The stacks that reach the program's beginning, or a thread's.
complete() {
  local all whole
  all=$(($(total_of "$1" samples) - $(lost "$1")))
  whole=$(reached "$1" samples '^(_start|__libc_start_main|clone|clone3|start_thread)$')
  at_least "$(awk -v n="$all" 'BEGIN { print n * 0.98 }')" "$whole" 'stacks that reach the beginning'
}
