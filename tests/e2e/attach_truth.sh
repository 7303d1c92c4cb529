# SPDX-License-Identifier: Apache-2.0
# A program that knows its own truth (tests/targets/truth.c), attached to before it begins to work.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# compare PERIOD "ROUNDS PACE_US THREADS" OPTION...: every kind of function, each against what the program knows
compare() {
  local period=$1 work=$2
  shift 2
  for attempt in 1 2 3 4 5; do
    rm -rf in p
    # shellcheck disable=SC2086
    running "$targets/truth" truth.tsv $work wait
    attach "$@"
    echo >&7
    finish
    wait "$sampler" || fail "record ended with $?: $(cat log)"
    profile=$(only p/heaptap.truth."$target".exit.pb.gz)
    comment_of "$profile" >comments
    # once more if the machine is so busy that stacks are lost
    [ "$period" = 1 ] && ! grep -qE '^samples: [0-9]+ taken, 0 lost stacks(,|$)' comments || break
  done
  profile_check "$profile"
  matches '^attached: ' comments
  "$readers/oracle" -func "$profile" >functions
  python3 "$top/tests/compare_truth.py" truth.tsv "$period" <functions || fail "the profile does not agree with the truth"
}

test_exact_at_period_1() {
  need_root
  compare 1 '10 2000 3' -p 1
}

test_within_standard_errors_at_the_default_period() {
  need_root
  compare 524288 '1500 20 0'
}

test_within_standard_errors_with_threads() {
  need_root
  compare 65536 '200 1000 5' -p 64K
}
