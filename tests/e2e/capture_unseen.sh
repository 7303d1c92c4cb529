# SPDX-License-Identifier: Apache-2.0
# What the hook cannot see is said in the profile, not passed over.

library_of() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

test_program_with_its_own_malloc_is_told() {
  cat >own.c <<'C'
#include <stddef.h>
static _Alignas(16) char pool[1 << 24];
static size_t used;
void *malloc(size_t size) { size = (size + 15) & ~15ul; used += size; return pool + used - size; }
void free(void *block) { }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { return malloc(size); }
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(100)); return 0; }
C
  gcc -O1 -fno-builtin -w -o own own.c
  record -b copy -p 1 -o x.pb.gz ./own 2>err
  profile_check x.pb.gz
  comment_of x.pb.gz | grep -q '^not seen: the program has a malloc of its own' || fail 'no comment'
  matches 'not seen: the program has a malloc' err
}

# 32-bit programs run as they would, and are named. (A dynamic one's loader says itself that it does not take the library.)
test_32_bit() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  printf '.globl _start\n_start: mov $1, %%eax\nmov $42, %%ebx\nint $0x80\n' >program.s
  gcc -m32 -nostdlib -static -o program program.s 2>/dev/null || skip 'gcc makes no 32-bit programs'
  ./program && status=0 || status=$?
  [ $status = 42 ] || skip 'this kernel runs no 32-bit programs'
  equal 1 "$(status_of "$heaptap" doctor ./program)"
  matches '^bad +./program is built for another architecture: the library cannot be loaded, so nothing of it is seen$' out
  equal 42 "$(status_of record -o x.pb.gz ./program)"
  matches 'program is built for another architecture' err
  equal 42 "$(status_of record -p 1 -o profiles/ sh -c 'exec ./program')"
  matches 'program, which is not profiled: it is built for another architecture|executed .*program, which is not profiled' err
}
