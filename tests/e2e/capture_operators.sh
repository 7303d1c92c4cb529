# SPDX-License-Identifier: Apache-2.0
# operator new and delete in all their forms, under every allocator: seen once, thrown through, and out of the way of plug-ins.

library_of() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# live PROFILE: what is in use; and, with "all", what was allocated, function by function
compare() {
  profile_check "$1"
  while IFS=$'\t' read -r function objects bytes live live_bytes; do
    reached_exactly "$1" "$function" "inuse_objects $live" "inuse_space $live_bytes"
    [ "$2" = all ] || continue
    reached_exactly "$1" "$function" "alloc_objects $objects" "alloc_space $bytes"
  done <truth.tsv
}

# Period 1: once each, whether an allocator's form ends in its own code, in its malloc, or in another form.
exact() {
  for backend in copy breakpoint; do
    LD_PRELOAD=$1 record -q -b $backend -p 1 -o x.pb.gz "${2:-$targets/operators}" truth.tsv 48
    compare x.pb.gz all
    ! comment_of x.pb.gz | grep '^not seen' || fail 'something is not seen'
  done
}

test_libstdcxx() { exact ''; }

preloaded_and_linked() {
  library=$(library_of "$1")
  [ -n "$library" ] || skip "$1 is not installed"
  exact "$library"
  g++ -std=c++17 -O2 -g -fno-builtin -fsized-deallocation -w -o linked "$top/tests/targets/operators.cc" \
    -Wl,--no-as-needed "$library"
  exact '' ./linked
}

test_tcmalloc() { preloaded_and_linked libtcmalloc_minimal.so.4; }
test_jemalloc() { preloaded_and_linked libjemalloc.so.2; }
test_mimalloc() { preloaded_and_linked libmimalloc.so.2; }

# mimalloc 2.0.9 aborts the program itself where it should throw.
test_exceptions_and_new_handlers() {
  for name in '' libtcmalloc_minimal.so.4 libjemalloc.so.2; do
    preload=${name:+$(library_of "$name")}
    for period in 1 4K 512K; do
      LD_PRELOAD=$preload record -q -b copy -p $period -o x.pb.gz "$targets/operators" truth.tsv 40 throw >out
      matches '^every throw came through$' out
      [ $period != 1 ] || compare x.pb.gz live
    done
  done
}

# Not once by operator new and once by malloc, and not by one count of bytes for both: that would be twice as much. 7 standard
# errors of 400,000 blocks.
test_sampled_once() {
  for name in '' libtcmalloc_minimal.so.4 libjemalloc.so.2 libmimalloc.so.2; do
    LD_PRELOAD=${name:+$(library_of "$name")} record -q -b copy -p 64K -o x.pb.gz "$targets/operators" truth.tsv 20000
    profile_check x.pb.gz
    awk -F '\t' '{ sum += $3 } END { print sum }' truth.tsv >want
    awk -v got="$(total_of x.pb.gz alloc_space)" '{ d = got / $1 - 1; exit !(d < 0.12 && d > -0.12) }' want ||
      fail "$name: alloc_space: truth $(cat want), profile $(total_of x.pb.gz alloc_space)"
  done
}

# A program with an operator new of its own keeps it, and its blocks are seen where it gets them.
test_programs_own_operator() {
  cat >own.cc <<'CC'
#include <cstdio>
#include <cstdlib>
#include <new>
static long count;
__attribute__((noinline)) void *operator new(size_t size) { count++; void *block = malloc(size); asm volatile("" : "+r"(block)); return block; }
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }
int main() {
  for (int i = 0; i < 100; i++) delete new int[1][100];
  for (int i = 0; i < 100; i++) delete new double;
  printf("%ld\n", count);
}
CC
  g++ -O1 -fno-builtin -w -o own own.cc
  equal "$(./own)" "$(record -q -b copy -p 1 -o x.pb.gz ./own)" 'calls of its own operator'
  profile_check x.pb.gz
  at_least 200 "$(total_of x.pb.gz alloc_objects)" 'blocks'
}

# A C program that loads C++ plug-ins, each with its own runtime or operators, out of each other's sight, and unloads them.
test_plugins_of_a_c_program() {
  cat >plugin.cc <<'CC'
#include <new>
#include <string>
#include <vector>
extern "C" long work() { std::vector<std::string> v; for (int i = 0; i < 100; i++) v.push_back(std::string(100 + i, 'x'));
  try { throw std::bad_alloc(); } catch (...) { } long n = 0; for (auto &s : v) n += s.size(); return n; }
CC
  cat >arena.cc <<'CC'
#include <cstddef>
#include <cstdlib>
static long taken;
void *operator new(size_t size) { taken++; return (char *)malloc(size + 16) + 16; }
void operator delete(void *block) noexcept { if (block) { taken--; free((char *)block - 16); } }
void operator delete(void *block, size_t) noexcept { operator delete(block); }
extern "C" long work() { long *a = new long, *b = new long; delete a; long now = taken; delete b; return now * 10 + taken; }
CC
  cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  for (int round = 0; round < 50; round++)
    for (int i = 1; i < argc; i++) {
      void *plugin = dlopen(argv[i], RTLD_LOCAL | (round % 2 ? RTLD_NOW : RTLD_LAZY));
      if (!plugin) { puts(dlerror()); return 1; }
      printf("%ld\n", ((long (*)(void))dlsym(plugin, "work"))());
      dlclose(plugin);
    }
  printf("%d\n", dlsym(RTLD_DEFAULT, "_Znwm") != NULL);
  return 0;
}
C
  g++ -O1 -shared -fPIC -fno-builtin -w -o plugin.so plugin.cc
  g++ -O1 -shared -fPIC -fno-builtin -w -o arena.so arena.cc
  g++ -O1 -shared -fPIC -fno-builtin -w -static-libstdc++ -static-libgcc -o static.so plugin.cc
  gcc -O1 -o host host.c -ldl
  for order in './plugin.so ./arena.so ./static.so' './arena.so ./static.so ./plugin.so'; do
    ./host $order >plain
    record -q -b copy -p 1 -o x.pb.gz ./host $order >profiled
    cmp plain profiled || fail "$order: other results"
    profile_check x.pb.gz
    LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so ./host $order >profiled
    cmp plain profiled || fail "$order, no session: other results"
  done
}
