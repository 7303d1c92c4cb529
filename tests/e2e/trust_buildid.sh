# SPDX-License-Identifier: Apache-2.0
# A build id says what a file's owner wants it to say.

# library FILE FUNCTION: work() calls FUNCTION, which allocates; with root's build id
library() {
  printf '#include <stdlib.h>
    __attribute__((noinline)) void %s(void) { for (int i = 0; i < 2000; i++) { void *volatile block = malloc(1000); } }
    void work(void) { %s(); __asm__(""); }\n' "$2" "$2" >"$2.c"
  gcc -O1 -fno-optimize-sibling-calls -shared -fPIC -g -Wl,--build-id=0x1234567890123456789012345678901234567890 \
    -o "$1" "$2.c"
}

test_a_borrowed_build_id_names_nothing_of_others() {
  need_root
  stage trust_borrow
  mkdir forged
  library honest.so honest_work
  library forged/honest.so forged_name
  chown -R 65534 forged
  # The forger comes first, and stays until root's program has its profile.
  cat >both.sh <<EOF
setpriv --reuid 65534 --regid 65534 --clear-groups $targets/trust_borrow forged/honest.so
cp $targets/trust_borrow ./victim
./victim ./honest.so
EOF
  # Again if the forger did not get its region within the 200 ms that a program waits for it (as in other_user.sh); with
  # an empty cache, since it must come first.
  for attempt in 1 2 3 4 5; do
    rm -rf out cache
    record -p 1K -o out/ sh both.sh 2>err
    grep -q 'not profiled: [0-9]* program' err || break
  done
  victim=$(only out/heaptap.victim.*.exit.pb.gz)
  forger=$(only out/heaptap.trust_borrow.*.exit.pb.gz)
  profile_check "$victim" "$forger"
  pprof_top "$forger" >top
  matches forged_name top # it was there, and is known by its own names
  pprof_top "$victim" >top
  matches honest_work top
  ! grep forged_name top || fail 'a stranger named the frames of a program of root'
}
