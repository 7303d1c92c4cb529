# SPDX-License-Identifier: Apache-2.0
# Every interleaving of the shared tables' protocols, by the model checker spin (tests/models).

verify() {
  command -v spin >/dev/null || skip 'spin is not installed'
  spin -a "$top/tests/models/$1.pml" >log
  gcc -O2 -w -DSAFETY -o pan pan.c
  ./pan -m1000000 >log || { cat log >&2; fail "$1"; }
  matches 'errors: 0' log
  ! grep -q 'max search depth too small' log || fail 'the search was cut off'
  grep -E 'states, stored|errors:' log
}

test_index() { verify index; }
test_slot_and_ring_of_frees() { verify slot; }
