# SPDX-License-Identifier: Apache-2.0
# A program that knows its own truth (tests/targets/truth.c) against its profile.
# timeout: 300

compare() {
  profile_check "$1"
  "$readers/oracle" -func "$1" >functions
  python3 "$top/tests/compare_truth.py" truth.tsv "$2" <functions || fail "the profile does not agree with the truth"
}

# exact "ROUNDS PACE_US [THREADS]" OPTION...: once more if the machine is so busy that stacks are lost; what is lost the
# fifth time too is allowed for, and not more.
exact() {
  local work=$1
  shift
  for attempt in 1 2 3 4 5; do
    # shellcheck disable=SC2086
    record -q "$@" -p 1 -o exact.pb.gz "$targets/truth" truth.tsv $work
    comment_of exact.pb.gz | grep -qE '^samples: [0-9]+ taken, 0 lost stacks(,|$)' && break
  done
  compare exact.pb.gz 1
}

test_exact_at_period_1() {
  exact '30 2000' -b auto
}

test_exact_at_period_1_by_copying() {
  exact '30 2000' -b copy
}

test_exact_at_period_1_with_threads() {
  exact '10 2000 4'
}

test_within_standard_errors_at_the_default_period() {
  record -q -o sampled.pb.gz "$targets/truth" truth.tsv 1500 20 # else 36,000 samples a second, too many for a busy machine
  compare sampled.pb.gz 524288
}

test_within_standard_errors_at_4k() {
  record -q -p 4K -o sampled.pb.gz "$targets/truth" truth.tsv 200 1000
  compare sampled.pb.gz 4096
}

test_within_standard_errors_with_threads() {
  record -q -p 64K -o sampled.pb.gz "$targets/truth" truth.tsv 200 1000 6
  compare sampled.pb.gz 65536
}

# A flood that no ring can hold costs stacks, never bytes.
test_totals_survive_a_flood() {
  record -q -p 64 -o flood.pb.gz "$targets/truth" truth.tsv 300 0
  profile_check flood.pb.gz
  wanted=$(awk -F '\t' '{ sum += $3 } END { printf "%.0f\n", sum }' truth.tsv)
  got=$(total_of flood.pb.gz alloc_space)
  # The standard error is a hundredth of that: 100 blocks of each size and more, each sampled with p > 0.2.
  awk -v wanted="$wanted" -v got="$got" 'BEGIN { d = got / wanted - 1; exit !(d < 0.01 && d > -0.01) }' ||
    fail "alloc_space: truth $wanted, profile $got"
  compare flood.pb.gz 64
}
