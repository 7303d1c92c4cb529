# SPDX-License-Identifier: Apache-2.0
# A target that writes anything into the shared memory and calls the trigger with anything (capture_hostile.c). The
# sampler lives, takes no more memory, and another target's numbers are right. HOSTILE_SECONDS=600 for a long run.
# timeout: 700

seconds=${HOSTILE_SECONDS:-6}

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

peak_kb() {
  awk '/^VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null
}

attack() {
  "$heaptap" record -i 60s -q -b "$1" -p 1 -o out/ sh -c "
    $targets/capture_hostile $seconds $RANDOM & hostile=\$!
    $targets/truth truth.tsv $((seconds * 3)) 4000
    wait \$hostile" 2>err &
  front=$!
  wait_for 10 eval '[ -n "$(sampler_of $front)" ]'
  sampler=$(sampler_of $front)
  peak=0
  while kill -0 $front 2>/dev/null; do
    now=$(peak_kb "$sampler") || break # it ends before the command that waits for it
    [ "${now:-0}" -le "$peak" ] || { peak=$now; echo "$SECONDS s: $peak KB"; }
    sleep 0.2
  done
  status=0
  wait $front || status=$?
  equal 0 $status "$1: status; $(cat err)"
  ! grep -q 'sampler died' err || fail "$1: the sampler died"
  wait_for 20 eval "! [ -e /proc/$sampler/exe ]"
  # Tables of stacks and symbols have bounds; without them this attack takes gigabytes in seconds.
  at_least "$peak" 600000 "$1: peak memory in KB, at most"
  profile=$(only out/heaptap.truth.*.exit.pb.gz)
  profile_check "$profile"
  # Bytes are the target's own books; the flood may cost it stacks, where they share a ring.
  wanted=$(awk -F '\t' '{ sum += $3 } END { printf "%.0f", sum }' truth.tsv)
  inuse=$(awk -F '\t' '{ sum += $5 } END { printf "%.0f", sum }' truth.tsv)
  at_least "$wanted" "$(total_of "$profile" alloc_space)" "$1: the other target's bytes"
  at_least "$(total_of "$profile" alloc_space)" $((wanted + 100000)) "$1: the other target's bytes, upper bound"
  at_least "$inuse" "$(total_of "$profile" inuse_space)" "$1: the other target's bytes in use"
  at_least "$(total_of "$profile" inuse_space)" $((inuse + 20000)) "$1: the other target's bytes in use, upper bound"
  echo "$1: peak $peak KB; $(comment_of "$profile" | grep '^samples')"
}

test_hostile_target() {
  for backend in $(backends); do
    rm -rf out
    attack "$backend"
  done
}

# Whatever stands in the buffer meanwhile, the hook copies its own stack.
test_stack_pointer_is_not_read_back() {
  status=0
  "$heaptap" record -q -b copy -p 1 "$targets/capture_register" 2>err || status=$?
  [ $status != 77 ] || skip 'no breakpoints here'
  equal 0 $status "status: $(cat err)"
  profile=$(only heaptap.capture_register.*.exit.pb.gz)
  profile_check "$profile"
  at_least 100000 "$(total_of "$profile" alloc_space)" bytes
}
