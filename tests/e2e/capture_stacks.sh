# SPDX-License-Identifier: Apache-2.0
# Allocations on signal stacks, fibers' stacks and deep stacks (capture_stacks.c): nothing beyond a stack's end is read.
# timeout: 180

stacks=$targets/capture_stacks

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

taken() {
  "$readers/oracle" -reach "$3" "$1" | awk -F '\t' -v type="$2" '$1 == "reach" && $2 == type { print $3 }'
}

exact() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$stacks" "$@" >truth 2>err || fail "$backend: status $?: $(cat err)"
    read -r _ pid objects bytes inuse <truth
    profile=$(only heaptap.capture_stacks."$pid".exit.pb.gz)
    profile_check "$profile"
    reached_exactly "$profile" take "alloc_objects $objects" "alloc_space $bytes" "inuse_space $inuse"
  done
}

test_signal_stack() {
  exact altstack
  # The kernel's frame between handler and interrupted function is crossed, by those backends that see the other stack.
  at_least 1 "$(taken "$profile" alloc_objects '^on_signal$')" 'blocks of the handler'
}

test_fibers() { exact fibers; }

test_deep_and_given_stacks() {
  exact deep
  at_least 50 "$(taken "$profile" alloc_objects '^deep_thread$')" 'stacks that reach the thread function'
}

# A service that was there before its daemon: the ends of its threads' stacks are known all the same.
test_threads_from_before_the_sampler() {
  equal whole "$(LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$targets/capture_offered")" 'of the stack of a thread'
}

# 5000 interruptions a second anywhere in the hook. What a handler allocates while the hook decides may go unsampled
# (two blocks, one of them kept), never miscounted: what is in use stays exact.
test_interrupted_hook() {
  cat >bump.c <<'C'
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
static _Alignas(16) char pool[256 << 20];
static _Atomic size_t used;
void *malloc(size_t size) { size = (size + 31) & ~15ul; size_t at = atomic_fetch_add(&used, size); *(size_t *)(pool + at) = size; return pool + at + 16; }
void free(void *block) { }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { void *n = malloc(size); if (block) { size_t old = ((size_t *)block)[-2] - 16; memcpy(n, block, old < size ? old : size); } return n; }
C
  gcc -O1 -fno-builtin -shared -fPIC -w -o bump.so bump.c
  for backend in $(backends); do
    rm -f heaptap.*
    LD_PRELOAD=$PWD/bump.so record -q -b "$backend" -p 1 "$stacks" timer >truth || fail "$backend: status $?"
    read -r _ pid objects bytes inuse <truth
    profile=$(only heaptap.capture_stacks."$pid".exit.pb.gz)
    profile_check "$profile"
    interrupted=$(sed -n 's/^interrupted //p' truth)
    at_least $((objects - 2 * interrupted)) "$(total_of "$profile" alloc_objects)" "$backend: objects"
    at_least $((inuse - 64 * interrupted)) "$(total_of "$profile" inuse_space)" "$backend: bytes in use"
    at_most "$inuse" "$(total_of "$profile" inuse_space)" "$backend: bytes in use"
  done
}
