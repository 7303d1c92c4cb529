# SPDX-License-Identifier: Apache-2.0
# The functions that jemalloc, mimalloc and tcmalloc have beside malloc: counted exactly where the allocator is there,
# and nowhere to be found where it is not.

library_of() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# exact COUNT PROGRAM [NAME]: what the program and its forked child say is what their profiles say. Without heaptap it
# prints the same.
exact() {
  local count=$1 program=$2 file
  rm -rf native recorded
  mkdir native recorded
  "$program" native "$count" >native.out || fail "$program: status $?"
  record -q -b copy -p 1 -o recorded/x.%p.%n.pb.gz "$program" recorded "$count" >recorded.out || fail "$program: status $?"
  cmp native.out recorded.out || fail "$program: other output"
  equal 2 "$(ls recorded/*.tsv | wc -l)" 'processes'
  for file in recorded/*.tsv; do
    at_least 10 "$(wc -l <"$file")" 'functions that allocate'
    same_as_truth "$file" "recorded/x.$(basename "$file" .tsv).exit.pb.gz"
  done
}

# same_as_truth TSV PROFILE: every function at once (reached_exactly is a process for each). Lost stacks may be anybody's.
same_as_truth() {
  profile_check "$2"
  ! comment_of "$2" | grep '^not seen' || fail 'something is not seen'
  "$readers/oracle" -func "$2" | awk -F '\t' '$1 == "func" { sub("/.*", "", $2); print $2 "\t" $5 "\t" $4 }' >functions
  awk -F '\t' '
    FILENAME == "functions" { value[$1, $2] = $3; next }
    function check(type, want) {
      got = value[type, $1] + 0; lost = value[type, "[lost stack]"] + 0
      if (got > want || got + lost < want) { printf "%s %s: wanted %d, got %d, and %d are lost\n", $1, type, want, got, lost; bad = 1 }
    }
    { check("alloc_objects", $2); check("alloc_space", $3); check("inuse_objects", $4); check("inuse_space", $5) }
    END { exit bad }' functions "$1" >&2 || { profile_show "$2" >&2; fail "$2: not the truth"; }
}

# The allocator's own functions, and ours, are left out of the stacks.
ends_in_the_programs_functions() {
  "$heaptap" export -f folded recorded/x.*.exit.pb.gz | awk '/work/ { sub(/ [0-9]+$/, ""); sub(/.*;/, ""); print }' | sort -u >leaves
  at_least 10 "$(grep -cE '^(take|resize)_' leaves)" 'functions of the program'
  ! grep -E '^([mrx]allocx|(je|mi|tc)_.*(alloc|new|expand)|sampled|capture|hook)' leaves || fail 'frames of the allocator'
}

test_jemalloc() {
  exact 20 "$targets/allocator_jemalloc"
  ends_in_the_programs_functions
}

test_mimalloc() {
  exact 5 "$targets/allocator_mimalloc"
  ends_in_the_programs_functions
}

test_tcmalloc() {
  exact 20 "$targets/allocator_tcmalloc"
  ends_in_the_programs_functions
}

# The same under gperftools' other libraries; that for debugging calls its malloc through tc_malloc and the like.
test_tcmalloc_of_other_kinds() {
  for kind in tcmalloc tcmalloc_minimal_debug; do
    g++ -std=c++17 -O2 -g -pthread -fno-builtin -fsized-deallocation -w -I "$top" -o $kind \
      $([ $kind = tcmalloc ] || echo -DMATCHED) "$top/tests/targets/allocator_tcmalloc.cc" -l$kind
    exact 3 ./$kind
  done
}

# However a program is linked: its references are in other places, and are bound at other times.
test_kinds_of_linking() {
  for flags in '-no-pie -fno-pie -Wl,-z,lazy' '-fPIE -pie -Wl,-z,lazy' '-fPIE -pie -fno-plt -Wl,-z,now'; do
    gcc -std=gnu11 -O2 -g -pthread -fno-builtin -w -I "$top" $flags -o linked "$top/tests/targets/allocator_jemalloc.c" -ljemalloc
    exact 1 ./linked
  done
  LD_BIND_NOW=1 exact 1 "$targets/allocator_tcmalloc"
}

# prefixed PREFIX: makes libprefixed.so, a jemalloc configured with the prefix, from Debian's
prefixed() {
  local archive
  archive=$(gcc -print-file-name=libjemalloc_pic.a)
  nm --defined-only "$archive" 2>/dev/null |
    awk -v p="$1" 'NF == 3 && $2 == "T" && $3 !~ /^(je_|_Z)/ { print $3, p $3 }' | sort -u >names
  grep -q '^mallocx ' names || fail 'no functions to rename'
  objcopy --redefine-syms=names "$archive" prefixed.a
  ar d prefixed.a "$(ar t prefixed.a | grep cpp)" # its operators would be the program's
  gcc -shared -o "lib$1prefixed.so" -Wl,--whole-archive prefixed.a -Wl,--no-whole-archive -lm -lpthread
}

test_jemalloc_with_a_prefix() {
  for prefix in je_ _rjem_; do
    prefixed $prefix
    gcc -std=gnu11 -O2 -g -pthread -fno-builtin -w -I "$top" -DPREFIX=$prefix -o linked$prefix \
      "$top/tests/targets/allocator_jemalloc.c" "./lib${prefix}prefixed.so"
    exact 5 ./linked$prefix
    # Beside another allocator, which is the program's malloc.
    LD_PRELOAD=$(library_of libmimalloc.so.2) exact 2 ./linked$prefix
  done
}

# Three allocators in one process, and threads that free what others have allocated.
test_several_allocators() {
  cat >several.c <<'C'
#include "tests/targets/allocator_main.h"
void *mi_malloc(size_t); void mi_free(void *); void *tc_malloc(size_t); void tc_free(void *);
void *mallocx(size_t, int); void dallocx(void *, int);
TAKE(mi_malloc, mi_malloc(size))
TAKE(tc_malloc, tc_malloc(size))
TAKE(mallocx, mallocx(size, 0))
TAKE(malloc, malloc(size))
__attribute__((constructor)) static void begin(void) { mi_free(mi_malloc(1)); } /* that changes errno once */
static void drop_any(struct block *block, long turn)
{
	const char *name = block->row->name + 5;
	if (name[1] == 'i') DROP(*block, mi_free(at));
	else if (name[0] == 't') DROP(*block, tc_free(at));
	else if (name[6]) DROP(*block, dallocx(at, 0));
	else DROP(*block, free(at));
}
static void work(long turn)
{
	struct block blocks[] = {TOOK(mi_malloc, 1000), TOOK(tc_malloc, 2000), TOOK(mallocx, 3000), TOOK(malloc, 500)};
	for (int i = 0; i < 4; i++)
		if ((turn + i) % 2) keep(blocks[i]);
		else drop_any(&blocks[i], turn);
}
C
  gcc -std=gnu11 -O2 -g -pthread -fno-builtin -w -I "$top" -o several several.c -Wl,--no-as-needed -ltcmalloc_minimal -lmimalloc -ljemalloc
  mkdir recorded
  record -q -b copy -p 1 -o recorded/x.%p.%n.pb.gz ./several recorded 50 >out
  equal good "$(cat out)"
  for file in recorded/*.tsv; do
    same_as_truth "$file" "recorded/x.$(basename "$file" .tsv).exit.pb.gz"
  done
}

# present: makes a program, and a library of its own, that look for the functions by weak references and by dlsym
looks() {
  cat >names.h <<'C'
#define NAMES(X) X(mallocx) X(rallocx) X(xallocx) X(sallocx) X(dallocx) X(sdallocx) X(nallocx) X(mallctl) X(je_mallocx) \
  X(je_malloc) X(_rjem_mallocx) X(_rjem_malloc) X(mi_malloc) X(mi_free) X(mi_heap_new) X(mi_new) X(tc_malloc) X(tc_free) X(tc_new)
#define WEAK(name) extern char name[] __attribute__((weak));
NAMES(WEAK)
#define SAY(name) printf("%s %s: weak %d, dlsym %d\n", where, #name, (void *)name != NULL, \
  dlsym(RTLD_DEFAULT, #name) != NULL);
C
  cat >own.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "names.h"
void library_says(void) { const char *where = "library"; NAMES(SAY) }
C
  cat >looks.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "names.h"
void library_says(void);
int main(void)
{
	const char *where = "program", *message;
	NAMES(SAY)
	library_says();
	dlerror();
	dlsym(RTLD_NEXT, "mallocx");
	message = dlerror();
	puts(message ? message : "no message");
	return 0;
}
C
  gcc -shared -fPIC -O1 -w -o libown.so own.c
  gcc -O1 -w "$@" -o looks looks.c ./libown.so -ldl
}

# A program that finds out by them whether it runs on such an allocator (folly, Rust, ClickHouse do) finds out the same.
test_programs_that_look_for_them_are_not_fooled() {
  for flags in '-fPIE -pie' '-no-pie -fno-pie' '-fPIE -pie -Wl,-z,now'; do
    looks $flags
    ./looks >native
    ! grep ' 1' native || fail 'natively there is something'
    record -q -b copy -p 1 -o x.pb.gz ./looks >recorded
    cmp native recorded || { diff native recorded >&2 || :; fail "$flags: fooled"; }
  done
  profile_check x.pb.gz
  for name in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
    LD_PRELOAD=$(library_of $name) ./looks >native
    grep -q ' 1' native || fail "$name: natively there is nothing"
    LD_PRELOAD=$(library_of $name) record -q -b copy -p 1 -o x.pb.gz ./looks >recorded
    cmp native recorded || { diff native recorded >&2 || :; fail "$name: other answers"; }
  done
}

# What is bound after the start: by dlsym, by a plug-in. And calls through pointers in data.
test_bound_later() {
  cat >plugin.c <<'C'
#include <stddef.h>
void *mallocx(size_t, int); void dallocx(void *, int);
void *take_in_plugin(void) { void *block = mallocx(700, 0); __asm__ volatile("" : "+r"(block) : : "memory"); return block; }
void drop_in_plugin(void *block) { dallocx(block, 0); }
C
  cat >later.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "proto/heaptap.h"
void *mallocx(size_t, int); void dallocx(void *, int);
static void *(*volatile in_data)(size_t, int) = mallocx;
void *take_by_data(void) { void *block = in_data(300, 0); __asm__ volatile("" : "+r"(block) : : "memory"); return block; }
static void *(*by_name)(size_t, int);
void *take_by_name(void) { void *block = by_name(500, 0); __asm__ volatile("" : "+r"(block) : : "memory"); return block; }
int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_LOCAL | (argc > 2 ? RTLD_NOW : RTLD_LAZY));
	if (!plugin) { puts(dlerror()); return 1; }
	void *(*take)(void) = (void *(*)(void))dlsym(plugin, "take_in_plugin");
	void (*drop)(void *) = (void (*)(void *))dlsym(plugin, "drop_in_plugin");
	by_name = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
	for (int i = 0; i < 50; i++) {
		void *a = take(), *b = take_by_name(), *c = take_by_data();
		if (i % 2) { drop(a); drop(b); dallocx(c, 0); }
	}
	heaptap_snapshot(NULL); /* the sampler has read the maps */
	puts("good");
	return 0;
}
C
  gcc -O1 -g -shared -fPIC -w -o plugin.so plugin.c
  for flags in '-fPIE -pie' '-no-pie -fno-pie'; do
    gcc -O1 -g -w -I "$top" $flags -o later later.c -ljemalloc -ldl
    for now in '' now; do
      equal good "$(record -q -b copy -p 1 -o x.pb.gz ./later ./plugin.so $now)"
      profile_check x.pb.gz
      reached_exactly x.pb.gz take_in_plugin 'alloc_objects 50' 'inuse_objects 25' 'inuse_space 17500'
      reached_exactly x.pb.gz take_by_name 'alloc_objects 50' 'inuse_objects 25' 'inuse_space 12500'
      reached_exactly x.pb.gz take_by_data 'alloc_objects 50' 'inuse_objects 25' 'inuse_space 7500'
    done
  done
}

# A program that has the functions itself, and calls them directly: all or nothing, or what it frees would stay in use.
test_program_that_has_them() {
  cat >having.c <<'C'
#include <stddef.h>
#include <stdlib.h>
#include "proto/heaptap.h"
static _Alignas(16) char pool[1 << 20];
static size_t used;
void *mallocx(size_t size, int flags) { used += (size + 15) & ~15ul; return pool + used - ((size + 15) & ~15ul); }
void dallocx(void *block, int flags) { __asm__ volatile("" ::: "memory"); }
void *take_in_library(size_t size);
int main(void)
{
	for (int i = 0; i < 100; i++) dallocx(take_in_library(500), 0);
	free(malloc(10));
	heaptap_snapshot(NULL);
	return 0;
}
C
  echo '#include <stddef.h>
void *mallocx(size_t, int);
void *take_in_library(size_t size) { void *block = mallocx(size, 0); __asm__ volatile("" : "+r"(block) : : "memory"); return block; }' |
    gcc -O1 -g -w -shared -fPIC -o libasking.so -x c -
  gcc -O1 -g -w -fno-builtin -rdynamic -I "$top" -o having having.c ./libasking.so
  record -q -b copy -p 1 -o x.pb.gz ./having
  profile_check x.pb.gz
  at_least 1 "$(total_of x.pb.gz alloc_objects)" 'blocks'
  reached_exactly x.pb.gz take_in_library 'alloc_objects 0' 'inuse_objects 0'
  equal 1 "$(status_of "$heaptap" doctor ./having)"
  matches '^bad +not seen of ./having: what is allocated by the allocator inside the program \(mallocx\)$' out
}

# An allocator that is built on malloc: each block once. And a realloc that throws has changed nothing. (Debian's mimalloc
# aborts where it should throw.)
test_wrapper_of_malloc_that_throws() {
  cat >wrapper.cc <<'CC'
#include <cstdlib>
#include <new>
extern "C" {
void *mi_malloc(size_t size) { return malloc(size); }
void mi_free(void *block) { free(block); }
void *mi_new(size_t size) { if (size >> 60) throw std::bad_alloc(); return mi_malloc(size); }
void *mi_realloc(void *block, size_t size) { return realloc(block, size); }
void *mi_new_realloc(void *block, size_t size) { if (size >> 60) throw std::bad_alloc(); return mi_realloc(block, size); }
}
CC
  cat >throwing.cc <<'CC'
#include <cstdio>
#include <new>
extern "C" { void *mi_new(size_t); void *mi_new_realloc(void *, size_t); void *mi_realloc(void *, size_t); void mi_free(void *);
#define KEEP asm volatile("" : "+r"(block) : : "memory"); return block
__attribute__((noinline)) void *take(size_t size) { void *block = mi_new(size); KEEP; }
__attribute__((noinline)) void *resize(void *old, size_t size) { void *block = mi_realloc(old, size); KEEP; }
__attribute__((noinline)) void *resize_throwing(void *old, size_t size) { void *block = mi_new_realloc(old, size); KEEP; }
}
template <typename F> static int caught(F call) { try { call(); } catch (const std::bad_alloc &) { return 1; } return 0; }
int main()
{
	int thrown = 0;
	void *block[40];
	for (int i = 0; i < 40; i++) {
		block[i] = take(900);
		thrown += caught([&] { resize_throwing(block[i], (size_t)1 << 61); });
		thrown += caught([] { mi_new((size_t)1 << 61); });
	}
	for (int i = 0; i < 10; i++) block[i] = resize_throwing(block[i], 5000); // moves
	for (int i = 10; i < 20; i++) block[i] = resize_throwing(block[i], 890); // stays
	for (int i = 20; i < 25; i++) block[i] = resize(block[i], 6000);
	for (int i = 5; i < 30; i++) mi_free(block[i]);
	printf("%d caught\n", thrown);
}
CC
  g++ -O1 -g -w -fno-builtin -shared -fPIC -o libwrapper.so wrapper.cc
  g++ -O1 -g -w -fno-builtin -o throwing throwing.cc ./libwrapper.so
  equal '80 caught' "$(record -q -b copy -p 1 -o x.pb.gz ./throwing)"
  profile_check x.pb.gz
  reached_exactly x.pb.gz take 'alloc_objects 40' 'alloc_space 36000' 'inuse_objects 10' 'inuse_space 9000'
  reached_exactly x.pb.gz resize 'alloc_objects 5' 'alloc_space 30000' 'inuse_objects 0'
  reached_exactly x.pb.gz resize_throwing 'inuse_objects 5' 'inuse_space 25000'
}

# Not twice: by the wrapper and by what it calls. 7 standard errors of 100,000 blocks.
test_sampled_once() {
  cat >once.c <<'C'
#include <stddef.h>
void *TAKE(size_t, int); void DROP(void *, int);
int main(void) { for (int i = 0; i < 100000; i++) DROP(TAKE(1000, 0), 0); return 0; }
C
  for row in 'mallocx dallocx jemalloc' 'mi_malloc mi_free mimalloc' 'tc_malloc tc_free tcmalloc_minimal' \
    'tc_malloc tc_free tcmalloc_minimal_debug'; do
    set -- $row
    gcc -O1 -w -fno-builtin -DTAKE="$1" -DDROP="$2" -o once once.c "-l$3"
    record -q -b copy -p 64K -o x.pb.gz ./once
    profile_check x.pb.gz
    awk -v got="$(total_of x.pb.gz alloc_space)" 'BEGIN { d = got / 1e8 - 1; exit !(d < 0.18 && d > -0.18) }' ||
      fail "$row: alloc_space: truth 1e8, profile $(total_of x.pb.gz alloc_space)"
  done
}

# Without a session the library leaves all as it is.
test_no_session() {
  for program in allocator_jemalloc allocator_mimalloc allocator_tcmalloc; do
    equal good "$(LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$targets/$program" . 2)" "$program"
  done
}

# What a pair that is not sampled costs, beside a malloc and free: a count, and that the call has not counted itself.
test_instructions_of_a_pair() {
  command -v valgrind >/dev/null || skip 'valgrind is not installed'
  cat >pair.c <<'C'
#include <stdlib.h>
void *mallocx(size_t, int); void dallocx(void *, int);
int main(int argc, char **argv) { for (long i = atol(argv[1]); i; i--) dallocx(mallocx(100, 0), 0); return 0; }
C
  gcc -O1 -w -o pair pair.c -ljemalloc
  counted() {
    local few many
    few=$("$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null ./pair 8000 2>&1 | sed -n 's/^==[0-9]*== Collected : //p')
    many=$("$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null ./pair 88000 2>&1 | sed -n 's/^==[0-9]*== Collected : //p')
    awk -v few="$few" -v many="$many" 'BEGIN { printf "%.1f\n", (many - few) / 80000 }'
  }
  native=$(counted env)
  attached=$(counted "$heaptap" record -q -b copy -o attached/)
  echo "per pair: native $native, attached $attached"
  at_least 10 "$native" native
  at_least "$native" "$attached" 'attached, and not less than natively'
  at_least "$attached" "$(awk -v n="$native" 'BEGIN { print n + 45 }')" 'native + 45 instructions, attached'
}

# Doctor says which of them it sees.
test_doctor() {
  status_of "$heaptap" doctor "$targets/allocator_jemalloc" >status
  matches "^ok +$targets/allocator_jemalloc is dynamically linked: its allocations are seen$" out
  matches "^ok +$targets/allocator_jemalloc is linked to libjemalloc.so.2: calls to that library's own functions are seen too$" out
  # Inside the program, as Rust's tikv-jemallocator is.
  prefixed _rjem_
  cat >inside.c <<'C'
#include <stddef.h>
#include <unistd.h>
void *_rjem_mallocx(size_t, int); void _rjem_sdallocx(void *, size_t, int);
int main(int argc, char **argv) { _rjem_sdallocx(_rjem_mallocx(100, 0), 100, 0); return argc > 1 ? pause() : 0; }
C
  gcc -O1 -w -o inside inside.c prefixed.a -lm -lpthread
  equal 1 "$(status_of "$heaptap" doctor ./inside)"
  matches '^bad +not seen of ./inside: what is allocated by the allocator inside the program \(_rjem_[a-z]*\)$' out
  matches '^ +fix: --mmap shows who makes it grow, linking it as a shared library shows each block$' out
  ! grep 'its allocations are seen' out || fail 'doctor says that they are seen'
  strip -o stripped inside
  status_of "$heaptap" doctor ./stripped >status
  matches '^note +./stripped is stripped: .*an allocator inside it would not be found$' out
  # A library of the program may have one too.
  gcc -O1 -w -shared -fPIC -o libhidden.so -Wl,--exclude-libs,ALL -x c - -x none prefixed.a -lm <<'C'
#include <stddef.h>
void *_rjem_mallocx(size_t, int);
void *hidden(void) { return _rjem_mallocx(10, 0); }
C
  printf 'void *hidden(void);\n#include <unistd.h>\nint main(void) { hidden(); write(1, "x", 1); return pause(); }\n' |
    gcc -w -o uses -x c - -x none ./libhidden.so
  "$heaptap" record -q -b copy -o x.pb.gz ./uses >started &
  front=$!
  wait_for 30 test -s started
  uses=$(child_of "$front" uses)
  equal 1 "$(status_of "$heaptap" doctor "$uses")"
  kill "$uses"
  wait "$front" || :
  matches '^bad +not seen of it: what is allocated by the allocator inside libhidden.so \(_rjem_[a-z]*\)$' out
}
