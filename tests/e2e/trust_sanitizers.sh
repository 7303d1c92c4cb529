# SPDX-License-Identifier: Apache-2.0
# Programs built with sanitizers end as they do natively.

# build SANITIZER COMPILER...: ./program, which ends with status 7, or by the sanitizer with an argument
build() {
  local sanitizer=$1
  shift
  cat >program.c <<'C'
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *volatile text = NULL;
	for (int i = 0; i < 1000; i++)
		text = strcpy(malloc(100), "hello");
	free(text);
	return argc > 1 ? text[0] : 7;
}
C
  "$@" -w -g -fsanitize="$sanitizer" -o program program.c 2>build.log || skip "no $sanitizer here"
  ./program >native.out 2>native.err && native=0 || native=$?
  [ $native = 127 ] && skip "its runtime is not found" || :
}

as_natively() {
  equal $native "$(status_of record -o prof/ "$@" ./program)" 'exit status'
  ! grep -E 'ASan runtime|Sanitizer: ' err || fail 'the sanitizer complains'
}

kept_away() {
  matches 'uses a sanitizer whose runtime must be loaded first .* it runs, but its heap will not be seen' err
}

test_address() { export ASAN_OPTIONS=detect_leaks=0; build address gcc; as_natively; kept_away; }
test_thread() { build thread gcc; as_natively; kept_away; }
test_undefined() { build undefined gcc; as_natively; profile_check prof/heaptap.program.*.exit.pb.gz; }
# What it finds is the same, though we know the address of each block.
test_leak() {
  build leak gcc
  for period in 512K 1; do
    equal $native "$(status_of record -p $period ./program)" "exit status at -p $period"
    grep '^SUMMARY' native.err >wanted
    equal "$(cat wanted)" "$(grep '^SUMMARY' err)" "found at -p $period"
  done
}
# A sanitizer follows frame pointers to the callers of each allocation: a suppression that names one finds it through our hooks.
test_a_leak_is_suppressed_by_its_caller() {
  cat >leaks.c <<'C'
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) static void by_calloc(void) { kept = calloc(1, 200); }
__attribute__((noinline)) static void by_realloc(void) { kept = realloc(malloc(10), 3000); }
__attribute__((noinline)) static void by_malloc(void) { kept = malloc(100); }
int main(void) { for (int i = 0; i < 50; i++) { by_calloc(); by_realloc(); by_malloc(); } kept = NULL; return 0; }
C
  printf 'leak:by_calloc\nleak:by_realloc\nleak:by_malloc\n' >known
  export LSAN_OPTIONS=suppressions=$PWD/known:print_suppressions=0
  local sanitizer period
  for sanitizer in address leak; do
    gcc -w -g -O1 -fno-omit-frame-pointer -fsanitize=$sanitizer -o leaks leaks.c 2>log || continue
    LSAN_OPTIONS= ./leaks 2>log && skip "it finds no leaks here" || :
    ./leaks 2>log || skip "its suppressions do not work here"
    for period in 1 1M; do
      equal 0 "$(status_of record -q -p $period -o prof/ sh -c './leaks; exit $?')" "exit status with $sanitizer, at -p $period"
    done
  done
}

test_address_of_clang() { export ASAN_OPTIONS=detect_leaks=0; build address clang; as_natively; }
test_address_of_clang_shared() { export ASAN_OPTIONS=detect_leaks=0; build address clang -shared-libasan; as_natively; kept_away; }
test_thread_of_clang() { build thread clang; as_natively; }

test_a_runtime_that_the_user_preloads() {
  runtime=$(gcc -print-file-name=libasan.so)
  [ -e "$runtime" ] || skip 'no runtime of gcc here'
  runtime=$(realpath "$runtime")
  export ASAN_OPTIONS=detect_leaks=0
  equal 3 "$(LD_PRELOAD=$runtime status_of record sh -c 'exit 3')"
  kept_away
}

# A child of COMMAND has our library before its runtime, and is still what it is without us.
test_a_child_with_address() {
  build address gcc
  export ASAN_OPTIONS=detect_leaks=0
  equal 7 "$(status_of record -q -p 1 -o prof/ sh -c './program; exit $?')" 'exit status'
  ! grep 'ASan runtime' err || fail 'the sanitizer complains'
  profile_check prof/heaptap.program.*.exit.pb.gz
  equal 1 "$(status_of record -q -p 1 sh -c './program x; exit $?')" 'exit status of a faulty program'
  matches 'AddressSanitizer: heap-use-after-free' err
}

# Not profiled: its runtime is not ready when the first malloc comes, and finds faults as without us.
test_a_child_with_thread() {
  build thread gcc
  ./program x 2>native.err && faulty=0 || faulty=$?
  for backend in auto copy; do
    equal 7 "$(status_of record -q -b $backend -p 1 -o prof/ sh -c './program; exit $?')" "exit status, $backend"
    ! grep 'Sanitizer' err || fail 'the sanitizer complains'
    equal $faulty "$(status_of record -q -b $backend -p 1 sh -c './program x; exit $?')" "status of a faulty program, $backend"
    matches 'ThreadSanitizer: heap-use-after-free' err
    equal 7 "$(status_of record -b $backend -p 1 -o prof/ sh -c './program; exit $?')" "exit status, $backend, not quiet"
    matches "not profiled: 1 program: the runtime of gcc's ThreadSanitizer must be ready" err
  done
  # A forked child of bash has samples of its own before it executes the program.
  status_of record -p 1 -o prof/ bash -c 'for i in 1 2 3; do ./program; done; true' >/dev/null
  matches 'not profiled: 3 programs, the last one: the runtime of gcc.s ThreadSanitizer must be ready before the library is$' err
}

# What the session leads to may be any file, in another pid namespace: whoever says in it why it is not profiled looks first.
test_a_file_that_is_no_region_is_left_alone() {
  build thread gcc
  head -c 8192 /dev/zero | tr '\0' A >precious
  cp precious before
  eval "$(sed -n 's/^#define \(REGION_ABI\|REGION_POOL_MAGIC\) *\([0-9a-fx]*\).*/\1=\2/p' "$top"/proto/region{,_pool}.h)"
  python3 - $REGION_POOL_MAGIC $REGION_ABI <<'EOF'
import struct, sys
magic, abi = (int(word, 0) for word in sys.argv[1:])
cookie = 0x1122334455667788
open("page", "wb").write(struct.pack("=QIIQ64s64s", magic, abi, 0, cookie, b"ticket", b"ledger"))
open("ticket", "wb").write(struct.pack("=Q56s", cookie, b"precious"))
EOF
  equal $native "$(HEAPTAP=page:1122334455667788 LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so status_of ./program)" 'exit status'
  cmp before precious || fail 'it was written to'
}
