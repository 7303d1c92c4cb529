# SPDX-License-Identifier: Apache-2.0
# Pages of a stack that are not present (unwind_holes.c): the kernel's dump ends there, the stack does not.
# timeout: 300

holes=$targets/unwind_holes

# by_event BACKEND ARGUMENT...: records until stacks arrive by the backend. A breakpoint is set when the program runs already;
# what auto takes is its own affair.
by_event() {
  local backend=$1 attempt way=$1
  shift
  [ "$backend" != copy ] || way='the hook'
  for attempt in $(seq 20); do
    rm -f x*.pb.gz
    record -q -b "$backend" -p 32K -o x.pb.gz "$holes" "$@" 2>err || fail "$backend $*: status $?: $(cat err)"
    comment_of x.pb.gz >comments
    [ "$backend" != uprobe ] || grep -q 'backend uprobe' comments || skip 'no uprobes here'
    [ "$backend" != breakpoint ] || grep -q 'backend breakpoint' comments || skip 'no breakpoints here'
    [ "$backend" = auto ] || grep -qE "^samples: .* by $way [0-9]" comments || continue
    profile_check x.pb.gz
    return
  done
  fail "$backend $*: no stack by it: $(grep '^samples' comments)"
}

backends() {
  echo auto
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# reached FUNCTION: objects of stacks that have it
reached() {
  "$readers/oracle" -reach "^$1\$" x.pb.gz | awk -F '\t' '$1 == "reach" && $2 == "alloc_objects" { print $3 }'
}

# whole ARGUMENT...: no stack ends before its caller, the first no more than those after it
whole() {
  for backend in $(backends); do
    by_event "$backend" "$@"
    ! grep -E '^samples: .*(bad read|not present|truncated|switched|no mapping)' comments || fail "$backend $*: stacks are cut"
    at_least 1000 "$(reached hole_leaf)" "$backend $*: objects of the leaf"
    equal "$(reached hole_leaf)" "$(reached hole_caller)" "$backend $*: objects of its caller"
  done
}

test_arrays_that_are_not_written() { whole threads; }

# What the loader has used before is present: 8 KiB are, and this is not.
test_array_in_the_main_thread() { whole main 24576; }

test_pages_that_were_given_back() { whole given; }

test_pages_of_the_callers() { whole kept; }

# Nobody knows where a fiber's stack ends, so nobody touches it: then it is said what is missing, and why.
test_stack_of_unknown_bounds() {
  need_root
  by_event uprobe fiber 16384
  matches '^samples: .*, stack page not present [1-9]' comments
  ! grep -E '^samples: .*bad read' comments || fail 'called a bad read'
  equal "$(reached hole_16384)" "$(reached '\[stack page not present\]')" 'objects with the marker'
}

# Nothing of ours runs in the program when the kernel takes a sample of an event.
test_events_say_so() {
  for bytes in 3000 8192 16384 24576 40000 60000; do
    rm -f x*.pb.gz
    record -q --no-heap -e cpu-clock@499 -o x.pb.gz "$holes" work $bytes 2>err || skip "no events here: $(cat err)"
    "$heaptap" check x-cpu-clock-exit.pb.gz || fail "$bytes: not valid"
    comment_of x-cpu-clock-exit.pb.gz >comments
    ! grep -E '^samples: .*bad read' comments || fail "$bytes: called a bad read"
    [ $bytes = 3000 ] || matches '^samples: .*stack page not present [1-9]' comments
    [ $bytes != 3000 ] || ! grep 'not present' comments || fail "$bytes: called not present"
  done
}

# Without the table of .eh_frame_hdr, all rows are read from end to end: so many that they are, and more than are read.
test_many_rows_without_a_table() {
  need_x86_64 'the code in it'
  local functions end
  for functions in 300000 900000; do
    cat >many.c <<C
#include <stdlib.h>
__asm__(".text; .rept $functions; .cfi_startproc; ret; .cfi_endproc; .endr");
__attribute__((noinline)) void work(void) { for (int i = 0; i < 100; i++) { void *block = malloc(90); __asm__ volatile("" : "+r"(block)); } }
int main(void) { work(); return 0; }
C
    gcc -O1 -fomit-frame-pointer -Wl,--no-eh-frame-hdr -o many many.c
    record -q -p 1 -b copy -o x.pb.gz ./many
    "$heaptap" export -f folded --sort alloc x.pb.gz >folded
    end='main;work 9000$'
    [ $functions = 300000 ] || end='^\[unwind rows not read\];work 9000$'
    matches "$end" folded
    rm x.pb.gz
  done
}
