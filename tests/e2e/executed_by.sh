# SPDX-License-Identifier: Apache-2.0
# Paths by which a program is executed that mean another file to the sampler: by /proc, by a descriptor, from a folder.

# An ordinary program, and programs whose text is at the offsets of heaptap's, with and without a build id: each executes
# itself N times by the path $BY.
make_programs() {
  cat >again.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile sink;
#ifdef TEXT_AT
__asm__(".section .note.pad,\"a\",@note\n .skip " TEXT_AT "\n .text\n .skip 0x4000,0x90");
#endif
__attribute__((noinline)) void generate(int count) { while (count--) sink = malloc(100); }
int main(int count, char **arguments) {
  int left = atoi(arguments[1]);
  generate(500);
  if (!left) return 0;
  char number[12], *next[] = {"again", number, NULL};
  snprintf(number, sizeof(number), "%d", left - 1);
  if (strcmp(getenv("BY"), "fd") == 0) fexecve(open(getenv("FILE"), O_RDONLY | O_CLOEXEC), next, environ);
  execv(getenv("BY"), next);
  return 1;
}
C
  gcc -O1 -g -Wl,--build-id=none again.c -o plain
  gcc -O1 -g -Wl,--build-id again.c -o named
  gcc -O1 -g -Wl,--build-id=none -DTEXT_AT='"0x10700"' again.c -o alike
}

# executes_itself PROGRAM BY: 13 programs, all of whose stacks are `main;generate`
executes_itself() {
  FILE=$1 BY=$2 record -q -i 0 -p 1 -o out/ "$1" 12 || fail "$1 by $2: status $?"
  local profile bytes=0
  for profile in out/*.exit*.pb.gz; do
    "$heaptap" check "$profile" || fail "$profile is not valid"
    "$heaptap" export -f folded --sort alloc "$profile" >>folded
  done
  bytes=$(awk '/;main;generate [0-9]+$/ { sum += $NF } END { print sum + 0 }' folded)
  equal $((13 * 50000)) "$bytes" "$1 by $2: bytes that generate() has allocated; all are: $(sort folded | uniq -c)"
  rm -r out folded
}

test_a_program_executes_itself() {
  make_programs
  mkdir dir
  cp plain dir/
  local program
  for program in plain named alike; do
    executes_itself ./$program /proc/self/exe
    executes_itself ./$program /proc/self/cwd/$program
    executes_itself ./$program fd
    executes_itself ./$program ./$program
  done
  executes_itself dir/plain dir/plain
}

# A library that the loader has found by a relative path.
test_a_library_by_a_relative_path() {
  cat >part.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) void *part(void) { void *block = malloc(100); __asm__ volatile("" : "+r"(block)); return block; }
C
  cat >whole.c <<'C'
void *part(void);
int main(void) { for (int i = 0; i < 500; i++) part(); return 0; }
C
  mkdir dir
  gcc -O1 -g -shared -fPIC -Wl,--build-id=none part.c -o dir/libpart.so
  gcc -O1 -g -Wl,--build-id=none whole.c -o whole -Ldir -lpart
  for i in 1 2 3 4 5 6; do
    LD_LIBRARY_PATH=dir record -q -i 0 -p 1 -o x.pb.gz ./whole
    "$heaptap" check x.pb.gz || fail 'not valid'
    equal 50000 "$("$heaptap" export -f folded --sort alloc x.pb.gz | awk '/;main;part [0-9]+$/ { print $NF }')" bytes
  done
}

# What the sampler cannot know is no guess: under a filter nobody asks the kernel which file a program is.
test_under_a_filter_nothing_is_guessed() {
  make_programs
  cat >filter.c <<'C'
#include <stdlib.h>
#include <sys/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>
int main(int count, char **arguments) {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
  execv(arguments[1], arguments + 1);
  return 1;
}
C
  gcc -O1 filter.c -o filter
  local program profile
  for program in alike plain; do
    BY=/proc/self/exe record -q -i 0 -p 1 -o out/ ./filter ./$program 12
    for profile in out/*.exit*.pb.gz; do
      "$heaptap" check "$profile" || fail "$profile is not valid"
      "$heaptap" export -f folded --sort alloc "$profile" >>folded
    done
    ! grep -vE "^((\[[a-z ]+\]|[^ ;]+\+0x[0-9a-f]+);)*[^ ;]+\+0x[0-9a-f]+ [0-9]+\$|;main;generate [0-9]+\$" folded >wrong ||
      fail "$program: names of another file: $(sort wrong | uniq -c)"
    rm -r out folded
  done
}
