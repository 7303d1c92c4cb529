# SPDX-License-Identifier: Apache-2.0
# A process that has one thread changes shared words without the lock (preload/one_thread.h): not a moment longer.
# timeout: 120

# program FLAGS...: ./becomes HOW, which allocates 100000 blocks alone, then has threads that allocate at once, made by itself
# or by the libc, and keeps one block in ten. It may have its own copy of the libc's word.
program() {
  cat >becomes.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { EACH = 100000, THREADS = 4 };
#ifdef COPY
extern char __libc_single_threaded;
#endif
static pthread_barrier_t together;
static volatile int done;
__attribute__((noinline)) static void *allocate(void) { void *block = malloc(64); asm volatile("" : "+r"(block)); return block; }
static void *work(void *argument)
{
  if (argument) pthread_barrier_wait(&together);
  for (int i = 0; i < EACH; i++) { void *block = allocate(); if (i % 10) free(block); }
  if (argument) __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
  return NULL;
}
static void expired(union sigval value) { work(value.sival_ptr); }
int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, NULL, THREADS);
  work(NULL);
#ifdef COPY
  if (!__libc_single_threaded) return 3;
#endif
  for (int i = 0; i < THREADS; i++)
    if (!strcmp(argv[1], "timer")) {
      struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = expired, .sigev_value.sival_ptr = threads};
      struct itimerspec soon = {{0, 0}, {0, 1000000}};
      timer_t timer;
      if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &soon, NULL)) return 4;
    } else if (pthread_create(&threads[i], NULL, work, threads)) return 5;
  while (done < THREADS) usleep(1000);
  printf("%d\n", EACH * (THREADS + 1));
  fflush(stdout);
  _exit(0);
}
C
  gcc -O1 -g -fno-builtin -w "$@" -o becomes becomes.c
}

exact() {
  local all
  record -q -p 1 -o x.pb.gz ./becomes "$1" >out || fail "status $?"
  all=$(cat out)
  profile_check x.pb.gz
  reached_exactly x.pb.gz allocate "alloc_objects $all" "alloc_space $((all * 64))" "inuse_objects $((all / 10))"
}

test_threads_of_its_own() {
  program
  exact create
}

test_threads_of_the_libc() {
  program
  exact timer
}

# The word is where the program has copied it to.
test_a_copy_of_the_word() {
  program -no-pie -fno-pie -DCOPY
  readelf -rW becomes | grep -q 'R_.*_COPY.*__libc_single_threaded' || skip 'the linker makes no copy'
  exact create
  exact timer
}
