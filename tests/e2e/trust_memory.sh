# SPDX-License-Identifier: Apache-2.0
# A program that wants all of the sampler's memory gets a share of it: the sampler stays small, who comes later is profiled.
# timeout: 300

anonymous_kb() {
  awk '/^RssAnon/ { print $2 }' "/proc/$1/status" 2>/dev/null
}

test_books_have_a_bound() {
  mkfifo go
  "$heaptap" record -b copy -p 1 --max-rss 256M -i 0 -o out/ sh -c "
    $targets/trust_fill 3 enough & hog=\$!
    read line <go
    $targets/truth truth.tsv 20 1000
    : >enough
    wait \$hog" 2>err &
  front=$!
  wait_for 10 eval '[ -n "$(sampler_of $front)" ]'
  sampler=$(sampler_of $front)
  wait_for 60 grep -q 'stacks take .* of 128 MiB: new ones of the largest processes and users are counted as lost' err
  # From here on it would go on growing at the same speed.
  full=$(anonymous_kb "$sampler")
  echo now >go
  peak=$full
  while kill -0 $front 2>/dev/null; do
    now=$(anonymous_kb "$sampler") || break # it ends before the command that waits for it
    [ "${now:-0}" -le "$peak" ] || peak=$now
    sleep 0.05
  done
  wait $front || fail "status $?: $(cat err)"
  at_least "$peak" 262144 "peak of the sampler's own memory in KB, at most"
  hogs=0
  for profile in out/heaptap.trust_fill.*.exit.pb.gz; do
    profile_check "$profile"
    comment_of "$profile" >comments
    ! grep -qE '^samples: .* no memory for [1-9]' comments || hogs=$((hogs + 1))
  done
  at_least 1 "$hogs" 'profiles that say so'
  profile=$(only out/heaptap.truth.*.exit.pb.gz)
  profile_check "$profile"
  comment_of "$profile" >comments
  ! grep 'no memory' comments || fail 'the other process had no room'
  wanted=$(awk -F '\t' '{ sum += $3 } END { printf "%.0f", sum }' truth.tsv)
  at_least "$wanted" "$(total_of "$profile" alloc_space)" "the other's bytes"
  at_least "$(total_of "$profile" alloc_space)" $((wanted + 100000)) "the other's bytes, upper bound"
  at_least 1 "$(share_of '^main$' "$profile")" "the other's stacks that are known, percent"
  echo "full at $full KB, peak $peak KB; $(grep '^samples' comments)"
}
