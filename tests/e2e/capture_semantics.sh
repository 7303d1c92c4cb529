# SPDX-License-Identifier: Apache-2.0
# A program's allocations do what they did, to the last errno, whatever allocator is behind them.
# timeout: 300

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# shape ALLOCATOR: sets preload (its library, or nothing) and what of its own manners the programs must know
shape() {
  unset NO_PVALLOC LAX_ALIGNMENT
  preload=
  case $1 in
    glibc) return ;;
    jemalloc) preload=libjemalloc.so.2; export NO_PVALLOC=1 ;;
    tcmalloc) preload=libtcmalloc_minimal.so.4 ;;
    mimalloc) preload=libmimalloc.so.2; export LAX_ALIGNMENT=1 ;;
  esac
  preload=$(ldconfig -p | awk -v name="$preload" '$1 == name { print $NF; exit }')
  [ -n "$preload" ] || skip "$1 is not installed"
}

same_semantics() {
  shape "$1"
  LD_PRELOAD=$preload "$targets/capture_semantics" 30 >plain
  matches '^done$' plain
  for backend in $(backends); do
    for period in 1 64 4K 512K; do
      LD_PRELOAD=$preload record -q -b "$backend" -p $period -o "$backend-$period.pb.gz" \
        "$targets/capture_semantics" 30 >profiled
      cmp plain profiled || fail "$backend, period $period: other results"
    done
    profile_check "$backend-1.pb.gz" "$backend-4K.pb.gz"
  done
}

test_semantics_glibc() { same_semantics glibc; }
test_semantics_jemalloc() { same_semantics jemalloc; }
test_semantics_tcmalloc() { same_semantics tcmalloc; }
test_semantics_mimalloc() { same_semantics mimalloc; }

# glibc's checks are an allocator like any other, though all of its names have hidden versions.
checks() {
  checks=$(ldconfig -p | awk '$1 == "libc_malloc_debug.so.0" { print $NF; exit }')
  [ -n "$checks" ] || skip 'this glibc has its checks in itself'
  cat >overrun.c <<'C'
#include <mcheck.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments)
{
	char *volatile block = malloc(100);
	if (strcmp(arguments[1], "overrun") == 0) {
		block[100] = 'A';
		free(block);
		return 0;
	}
	mtrace();
	block = realloc(malloc(1000), 2000);
	free(block);
	free(calloc(3, 1000));
	free(aligned_alloc(4096, 8192));
	muntrace();
	return 0;
}
C
  gcc -w -fno-builtin -o overrun overrun.c
}

test_glibc_checks() {
  checks
  export GLIBC_TUNABLES=glibc.malloc.check=3
  for period in 1 512K; do
    equal 134 "$(LD_PRELOAD=$checks status_of record -q -p $period -o x.pb.gz ./overrun overrun)" "status at $period"
  done
  LD_PRELOAD=$checks record -p 1 -o x.pb.gz sh -c "LD_PRELOAD=$checks:\$LD_PRELOAD exec ./overrun trace" 2>err
  matches 'not seen: .* malloc of its own' err
}

# The callers that mtrace names are heaptap's functions where these call the next one and are not left by a jump.
test_mtrace() {
  checks
  MALLOC_TRACE=plain LD_PRELOAD=$checks ./overrun trace
  MALLOC_TRACE=seen LD_PRELOAD=$checks record -q -p 1 -o x.pb.gz ./overrun trace
  for trace in plain seen; do
    sed -E 's/^@ [^ ]+ ([-+<>]) 0x[0-9a-f]+/\1/' $trace >$trace.calls
  done
  at_least 8 "$(wc -l <plain.calls)" 'calls that are traced'
  cmp plain.calls seen.calls || fail "traced: $(cat seen.calls)"
}

# The allocator as a library that the program was linked with: it comes after ours in the search order too.
test_semantics_linked() {
  for allocator in jemalloc tcmalloc mimalloc; do
    shape $allocator
    gcc -O2 -fno-builtin -w -D_GNU_SOURCE -o linked "$top/tests/targets/capture_semantics.c" -Wl,--no-as-needed "$preload"
    ./linked 30 >plain
    for period in 1 4K; do
      record -q -b copy -p $period -o "$allocator-$period.pb.gz" ./linked 30 >profiled
      cmp plain profiled || fail "$allocator linked, period $period: other results"
    done
    profile_check $allocator-1.pb.gz
  done
}

# Period 64 and 8 threads: every free and every realloc meets the table. STRESS_SECONDS is for long runs by hand.
stress() {
  shape "$1"
  LD_PRELOAD=$preload "$targets/capture_stress" 1 8 >plain
  for backend in $(backends); do
    for period in ${2:-64 4K}; do
      LD_PRELOAD=$preload record -q --mmap -b "$backend" -p $period -o "$1-$backend-$period.pb.gz" \
        "$targets/capture_stress" "${STRESS_SECONDS:-1}" 8 >profiled || fail "$1, $backend, period $period: status $?"
      cmp plain profiled
      profile_check "$1-$backend-$period.pb.gz"
    done
  done
}

test_stress_glibc() { stress glibc '1 64 4K 512K'; }
test_stress_jemalloc() { stress jemalloc; }
test_stress_tcmalloc() { stress tcmalloc; }
test_stress_mimalloc() { stress mimalloc; }

# Old programs' cfree and C23's sized frees are in no header here, and the C library may have none: found by name.
test_every_name_of_free() {
  cat >frees.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
__attribute__((noinline, noclone)) static void *take(void) { return memalign(64, 1000); }
int main(void)
{
	void (*cfree_)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
	void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
	void (*aligned)(void *, size_t, size_t) = (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
	if (!cfree_ || !sized || !aligned)
		return 3;
	for (int i = 0; i < 500; i++) {
		cfree_(take());
		sized(take(), 1000);
		aligned(take(), 64, 1000);
		free(take());
	}
	take();
	return 0;
}
C
  gcc -O1 -fno-builtin -w -o frees frees.c -ldl
  record -q -b copy -p 1 -o frees.pb.gz ./frees || fail "status $?"
  profile_check frees.pb.gz
  "$readers/oracle" -reach '^take$' frees.pb.gz | awk -F '\t' '$1 == "reach" { print $2, $3 }' >got
  matches '^alloc_objects 2001$' got
  matches '^inuse_objects 1$' got
}

# Programs that bring a malloc, mmap and memcpy of their own, and red zones in their stacks, which are copied.
sanitized() {
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1
  gcc -std=gnu11 -O1 -g -pthread -fno-builtin -w -I"$top" -fsanitize="$1" "$2" -o program \
    "$top/tests/targets/capture_stress.c" -Wl,--no-as-needed -lstdc++ 2>log && ./program 0 1 >/dev/null || skip "no $1 sanitizer here"
  for backend in $(backends); do
    LAX_ALIGNMENT=1 record -q --mmap -b "$backend" -p 1K -o "$backend.pb.gz" ./program 1 8 >out 2>err ||
      { tail -n 30 err >&2; fail "$1, $backend: status $?"; }
    equal 'every block was right' "$(cat out)"
    profile_check "$backend.pb.gz"
  done
}

test_address_sanitizer() { sanitized address -static-libasan; }
test_thread_sanitizer() { sanitized thread -static-libtsan; }
test_undefined_behaviour_sanitizer() { sanitized undefined -static-libubsan; }
