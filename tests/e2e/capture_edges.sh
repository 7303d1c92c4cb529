# SPDX-License-Identifier: Apache-2.0
# What a hook may not rely on: clocks, stacks, constructors, notes, users, limits (capture_edges.c).

edges=$targets/capture_edges

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo auto breakpoint copy
}

# unharmed MODE [OPTION...]: it ends as it does alone, whatever the backend, and each of its allocations is in the profile
unharmed() {
  local status mode=$1
  shift
  status=$(status_of "$edges" "$mode")
  [ "$status" != 77 ] || skip "not possible here: $mode"
  equal 0 "$status" 'native'
  for backend in $(backends); do
    rm -rf out.d
    equal 0 "$(status_of "$heaptap" record -q -b "$backend" -p 1 -o out.d/ "$@" "$edges" "$mode")" "$mode by $backend"
  done
  profile=$(only out.d/*.exit.pb.gz)
  profile_check "$profile"
}

# A block of 0 bytes is an object of 0 bytes, whoever reads its stack, and at any period.
test_blocks_of_no_bytes() {
  cat >none.c <<'C'
#include <stdlib.h>
void *volatile last;
int main(void)
{
	for (int i = 0; i < 10000; i++)
		last = i % 2 ? malloc(0) : calloc(0, 8);
	return 0;
}
C
  gcc -w -fno-builtin -o none none.c
  for backend in $(backends); do
    record -b "$backend" -p 1 -o exact.pb.gz ./none 2>err
    equal '10000 0' "$(total_of exact.pb.gz inuse_objects) $(total_of exact.pb.gz alloc_space)" "$backend, exact"
    matches 'at end  0 B in 10000 objects' err
    record -q -b "$backend" -p 16 -o sampled.pb.gz ./none
    equal 0 "$(total_of sampled.pb.gz alloc_space)" "bytes, $backend"
    at_least 8000 "$(total_of sampled.pb.gz alloc_objects)" "objects, $backend" # five standard errors
    at_most 12000 "$(total_of sampled.pb.gz alloc_objects)" "objects, $backend"
    profile_check exact.pb.gz sampled.pb.gz
  done
  "$heaptap" report exact.pb.gz >report
  matches '^ *in use +0 B in 10000 objects$' report
  ! grep 'No allocation was sampled' report || fail 'they were sampled'
}

test_time_stamp_counter_forbidden() {
  unharmed no_tsc
  equal 1000 "$("$readers/oracle" -reach '^allocate$' "$profile" |
    awk -F '\t' '$1 == "reach" && $2 ~ /^alloc_objects/ { print $3 }')" 'blocks'
}

test_strict_seccomp() { unharmed strict; }

test_coroutine_stack_below_the_main_one() { unharmed hole; }

# The main thread may then have all that is there for its stack, or nearly.
test_coroutine_stack_where_the_main_one_may_grow() {
  for limit in 409600 unlimited; do
    ulimit -S -s $limit || skip 'the hard limit of the stack is lower'
    unharmed hole
    unharmed odd
  done
}

# A copy from the coroutine's stack on would run over it.
test_guard_page_within_a_stack() {
  unharmed guard
  unharmed thread_guard
  unharmed mapped_guard --mmap
}

# The loader calls a resolver before thread-local storage is initialized.
test_resolver_that_allocates() {
  for library in '' "$HEAPTAP_PROGRAMS/libheaptap.so"; do
    equal resolved "$(LD_PRELOAD=$library "$targets/capture_resolver")" "alone, LD_PRELOAD='$library'"
  done
  for backend in $(backends); do
    equal resolved "$("$heaptap" record -q -b "$backend" -p 1 -o "$backend.pb.gz" "$targets/capture_resolver")" "$backend"
    profile_check "$backend.pb.gz"
  done
}

# ---- library constructors

# build NAME LINKER-FLAG...: a program that does nothing, and a library whose constructor allocates 1,000,000 bytes
build() {
  local name=$1
  shift
  cat >"$name.lib.c" <<'C'
#include <stdlib.h>
static void *volatile keep[1000];
__attribute__((noinline)) void library_starts(void)
{
	for (int i = 0; i < 1000; i++)
		keep[i] = malloc(1000);
}
__attribute__((constructor)) static void construct(void) { library_starts(); }
void library_use(void) {}
C
  echo 'void library_use(void); int main(void) { library_use(); }' >"$name.c"
  gcc -g -O2 -shared -fPIC "$@" -o "lib$name.so" "$name.lib.c"
  gcc -g -O2 -o "$name" "$name.c" -L. "-l$name" "-Wl,-rpath,$PWD"
}

test_constructors_of_libraries() {
  build plain
  build first -Wl,-z,initfirst
  for program in plain first; do
    for backend in $(backends); do
      rm -rf out.d
      record -q -b "$backend" -p 1 -o out.d/ "./$program"
      equal 1000000 "$(total_of out.d/*.exit.pb.gz alloc_space)" "$program by $backend, bytes"
    done
    share=$(share_of "^library_starts$" out.d/*.exit.pb.gz)
    [ "$share" = 100 ] || { "$heaptap" report --sort alloc out.d/*.exit.pb.gz; fail "$program: share of its constructor: $share"; }
  done
}

# The first allocation of all is where the library attaches: inside dlopen; under the loader's lock (recursive) in a
# callback of dl_iterate_phdr, and in a handler there; and in a second thread under it, of C11's, which no hook sees.
test_first_allocation_under_the_loaders_lock() {
  cat >early.lib.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
static void *volatile keep[1000];
__attribute__((noinline)) void library_starts(void)
{
	for (int i = 0; i < 1000; i++)
		keep[i] = malloc(1000);
	__asm__ volatile("" ::: "memory");
}
static int in_callback(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	library_starts();
	return 1;
}
static void in_handler(int number) { library_starts(); }
static int raise_there(struct dl_phdr_info *info, size_t bytes, void *argument) { return raise(SIGUSR2) == 0; }
static int in_thread(void *argument) { return dl_iterate_phdr(in_callback, 0); }
__attribute__((constructor)) static void construct(void)
{
	const char *where = getenv("WHERE");
	thrd_t thread;
	if (!strcmp(where, "dlopen"))
		dlopen("./libinner.so", RTLD_NOW);
	else if (!strcmp(where, "callback"))
		dl_iterate_phdr(in_callback, 0);
	else if (!strcmp(where, "handler") && signal(SIGUSR2, in_handler) != SIG_ERR)
		dl_iterate_phdr(raise_there, 0);
	else if (!strcmp(where, "thread") && thrd_create(&thread, in_thread, 0) == thrd_success)
		thrd_join(thread, 0);
}
void library_use(void) {}
C
  build inner
  echo 'void library_use(void); int main(void) { library_use(); }' >early.c
  gcc -g -O2 -w -fno-optimize-sibling-calls -shared -fPIC -o libearly.so early.lib.c
  gcc -g -O2 -o early early.c -L. -learly "-Wl,-rpath,$PWD"
  for where in dlopen callback handler thread; do
    export WHERE=$where
    for backend in copy auto; do
      equal 0 "$(status_of timeout "$(seconds 60)" "$heaptap" record -q -b "$backend" -p 1 -o "$where.pb.gz" ./early)" "$where by $backend"
      reached_exactly "$where.pb.gz" library_starts 'alloc_objects 1000' 'alloc_space 1000000'
      rm -f "$where".*
    done
  done
}

# as_valgrind COMMAND...: as many blocks and bytes as memcheck counts, from the first to the last. $more: bytes that it
# allocates on this processor, and not on valgrind's.
more=0
as_valgrind() {
  command -v valgrind >/dev/null || skip 'valgrind is not installed'
  record -q -b copy -p 1 -o as.pb.gz "$@" >out
  valgrind "$@" 2>&1 >out | sed -n 's/.*total heap usage: \([0-9,]*\) allocs, [0-9,]* frees, \([0-9,]*\) bytes.*/\1 \2/p' |
    tr -d , >memcheck
  read -r blocks bytes <memcheck
  equal "$blocks" "$(total_of as.pb.gz alloc_objects)" "$1: blocks"
  # Some depend on the environment's length.
  awk -v a=$((bytes + more)) -v b="$(total_of as.pb.gz alloc_space)" 'BEGIN { exit !(b > a * 0.98 && b < a * 1.02) }' ||
    fail "$1: memcheck counts $bytes bytes, of $more it cannot know, the profile has $(total_of as.pb.gz alloc_space)"
}

test_from_the_first_block() {
  cat >map.cc <<'C'
#include <iostream>
#include <map>
#include <string>
int main()
{
	std::map<int, std::string> m;
	for (int i = 0; i < 1000; i++)
		m[i] = std::string(50, 'x');
	std::cout << m.size() << "\n";
}
C
  g++ -g -O2 -o map map.cc
  as_valgrind ./map
  # libstdc++'s pool for exceptions that find no memory: its constructor's
  at_least 72704 "$("$readers/oracle" -reach '^call_init$' as.pb.gz |
    awk -F '\t' '$1 == "reach" && $2 ~ /^inuse_space/ { print $3 }')" 'bytes of a constructor'
}

# Its command line is taken apart by constructors of libLLVM, 469 KiB of 1.0 MB.
test_clang() {
  command -v clang >/dev/null || skip 'clang is not installed'
  # Its signal stack is 64 KiB and four of the kernel's frames (_SC_SIGSTKSZ), which large registers such as AMX's make
  # longer; valgrind's processor has none.
  more=$(python3 -c 'import os; print(os.sysconf(250) - 8192)')
  as_valgrind "$(readlink -f "$(command -v clang)")" --version
}

# ---- notes

# A header of notes that names an address at which nothing is mapped.
test_notes_that_are_not_mapped() {
  build noted
  python3 - libnoted.so <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
start, = struct.unpack_from("<Q", data, 32)
size, count = struct.unpack_from("<HH", data, 54)
for at in range(start, start + size * count, size):
    if struct.unpack_from("<I", data, at)[0] == 4:
        struct.pack_into("<QQQ", data, at + 8, 0, 1 << 40, 1 << 40)
open(sys.argv[1], "wb").write(data)
P
  equal 0 "$(status_of ./noted)" native
  equal 0 "$(status_of "$heaptap" record -q -p 1 -o noted.pb.gz ./noted)" recorded
  equal 1000000 "$(total_of noted.pb.gz alloc_space)" bytes
}

# ---- one sample, two dumps

test_a_trigger_that_ran_twice_is_one_sample() {
  need_root
  record -q -b uprobe -p 1 -o twice.pb.gz "$edges" twice
  comment_of twice.pb.gz | grep '^samples:' >comment
  taken=$(sed -n 's/^samples: \([0-9]*\) taken, 0 lost.*/\1/p' comment)
  matches ", by uprobe $taken(,|\$)" comment
}

# ---- the same sums on both sides

# Whatever flags a distribution gives: a multiplication and addition in one rounds differently.
test_weights_are_not_fused() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    make -s -C "$top" CC=$compiler O="$PWD/$compiler" CFLAGS='-O2 -mfma -ffp-contract=fast' \
      "$PWD/$compiler/preload/weigh.o" "$PWD/$compiler/sampler/intake/region_read.o" >log 2>&1 ||
      { cat log >&2; fail "$compiler"; }
    for object in preload/weigh sampler/intake/region_read; do
      objdump -d "$compiler/$object.o" >code
      matches 'v?(mul|div)sd' code
      ! grep -E 'vfn?m(add|sub)' code >&2 || fail "$object.o by $compiler"
    done
  done
}

# ---- users

# A worker that has dropped root does not see what its master's stacks hold. The worker copies its own stacks into a few
# buffers. Only a stack that finds none of them free is lost, and is counted; at a period of 1 some are. What the kernel
# dumps, or the hook walks, is known all the same.
test_worker_does_not_see_its_masters_stacks() {
  need_root
  for how in uid/copy uid/auto reuid/copy resuid/copy; do
    backend=${how#*/}
    rm -rf out.d
    equal 0 "$(status_of "$heaptap" record -q -b $backend -p 1 -o out.d/ "$edges" drop "${how%/*}")" "$how"
    matches '^worker: not seen$' out
    equal 2 "$(find out.d -name '*.exit.pb.gz' | wc -l)" profiles
    for profile in out.d/*.exit.pb.gz; do
      profile_check "$profile"
      "$readers/oracle" -reach '^worker_allocates$' "$profile"
    done | awk -F '\t' '$1 == "reach" && $2 ~ /^alloc_objects/ { print $3 }' | sort -n >blocks
    for profile in out.d/*.exit.pb.gz; do
      comment_of "$profile" | sed -n 's/^samples: .* changed its user id \([0-9]*\).*/\1/p'
    done >lost
    if [ $backend = copy ]; then
      at_least 20 "$(tail -n 1 blocks)" "$how: the worker's blocks"
      at_least 1000 $(($(tail -n 1 blocks) + $(cat lost) + 0)) "$how: the worker's blocks, and stacks lost"
    else
      equal 1000 "$(tail -n 1 blocks)" "$how: the worker's blocks"
      equal '' "$(cat lost)" "$how: stacks lost"
    fi
  done
}

# ---- limits

test_no_room_is_said() {
  (ulimit -v 430000 && record -o out.d/ "$edges" hole) 2>err || [ $? = 77 ] || fail "status $?"
  matches 'no profile of .*: its limit of address space' err
  matches 'not profiled: .*1 program: its limit of address space' err
  record -o shell.d/ sh -c "ulimit -v 400000; $edges hole" 2>err || [ $? = 77 ] || fail "status $?"
  matches 'not profiled: .*1 program: its limit of address space' err
}
