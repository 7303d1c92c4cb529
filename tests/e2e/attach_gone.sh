# SPDX-License-Identifier: Apache-2.0
# Attaching without root's rights to a process whose files were replaced or removed: what can be told of them is in its
# memory alone, and heaptap copies so many of them.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# chained COUNT HELD_MS: sets target, a process whose only thread is in COUNT libraries, each called by the one before; the last
# is in a callback of dl_iterate_phdr for HELD_MS after a line, and then waits for the next line. All libraries are removed.
chained() {
  cat >step.c <<'C'
typedef void step(void *const *next);
__attribute__((noinline)) void NAME(void *const *next) { ((step *)*next)(next + 1); __asm__ volatile(""); }
C
  cat >chain.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long held_ms;
void *volatile kept;
static long now_ms(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static int hold(struct dl_phdr_info *info, size_t bytes, void *context) { for (long end = now_ms() + held_ms; now_ms() < end;) ; return 1; }
__attribute__((noinline)) static void work(void) { for (int i = 0; i < 1000; i++) kept = malloc(90); __asm__ volatile(""); }
static void last(void *const *next) {
  struct pollfd input = {0, POLLIN, 0};
  char line[9];
  puts("ready");
  fflush(stdout);
  if (!fgets(line, sizeof(line), stdin)) exit(1);
  puts("held");
  fflush(stdout);
  dl_iterate_phdr(hold, NULL);
  while (poll(&input, 1, 10) == 0) ;
  work();
}
int main(int count, char **arguments) {
  static void *steps[64];
  char name[32];
  int i;
  held_ms = atol(arguments[2]);
  for (i = 0; i < atoi(arguments[1]); i++) {
    snprintf(name, sizeof(name), "./libstep%d.so", i);
    void *library = dlopen(name, RTLD_NOW);
    snprintf(name, sizeof(name), "step%d", i);
    if (!library || !(steps[i] = dlsym(library, name))) return 1;
  }
  steps[i] = (void *)last;
  ((void (*)(void *const *))steps[0])((void *const *)steps + 1);
  return 0;
}
C
  gcc -O1 -g -o chain chain.c -ldl
  for number in $(seq 0 $(($1 - 1))); do
    gcc -O2 -fomit-frame-pointer -shared -fPIC -DNAME=step$number -o libstep$number.so step.c
  done
  stage
  chmod a+rX -R .
  chmod a+rwx .
  mkfifo in
  chmod a+rw in
  unprivileged sh -c 'echo $$ >&2; exec "$@"' sh ./chain "$1" "$2" <in >said 2>pid &
  job=$!
  exec 7>in
  wait_for 20 says ready
  target=$(cat pid)
  rm libstep*.so
}

# While no thread is at a safe point the mappings are read again and again, and the copies stay.
test_waits_for_a_safe_point() {
  chained 7 5000
  echo >&7
  wait_for 20 says held
  unprivileged "$heaptap" record -i 0 -p 1 -o x.pb.gz -P "$target" >log 2>&1 7>&- &
  sampler=$!
  decided() { grep -qE 'attached|cannot be' log; }
  wait_for 40 decided
  exec 7>&-
  wait $sampler || fail "not attached: $(cat log)"
  wait $job || fail "the target ended with $?"
  profile_check x.pb.gz
  reached_exactly x.pb.gz work 'alloc_objects 1000' 'alloc_space 90000'
}

# Where more is gone than is copied, a thread's callers would be guesses: it may be in the allocator.
test_more_is_gone_than_is_copied() {
  chained 20 0
  equal 1 "$(status_of unprivileged "$heaptap" record -i 0 -p 1 -o x.pb.gz -P "$target" 7>&-)"
  matches "^heaptap: pid $target cannot be attached to: its threads are in libstep[0-9]+\.so: that file was replaced, removed or hidden, and too little of it can be read$" err
  unprivileged "$heaptap" doctor "$target" >out || true
  matches '^note +20 mapped files were replaced or removed while it ran, such as .*/libstep[0-9]+\.so: what is known of such a file is read from its memory, and only functions that the file exports have names$' out
  matches '^ok +[0-9]+ mapped files with code, 2[0-9] of them without names' out
  echo >&7
  wait_for 20 says held
  exec 7>&-
  wait $job || fail "the target ended with $?"
}
