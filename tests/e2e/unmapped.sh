# SPDX-License-Identifier: Apache-2.0
# Libraries that follow each other in one place, where no records of the kernel tell: a block is never named by one that was
# not there when it was allocated.
# timeout: 300

# Two libraries so alike that the kernel puts each where the other was. Each allocates blocks of a size of its own, also in
# its destructor, within dlclose.
make_programs() {
  local name size=1001
  for name in one two; do
    cat >$name.c <<C
#include <stdlib.h>
void *volatile ${name}_kept;
__attribute__((noinline)) void *leaf_$name(size_t size) { void *block = malloc(size); __asm__ volatile("" : "+r"(block)); return block; }
__attribute__((noinline)) void *plugin_take(void) { void *block = leaf_$name($size); __asm__ volatile("" : "+r"(block)); return block; }
__attribute__((destructor)) static void end(void) { for (int i = 0; i < 4; i++) ${name}_kept = leaf_$name($size); }
C
    gcc -O1 -g -shared -fPIC -Wl,--build-id "$@" -o $name.so $name.c
    size=$((size + 1))
  done
  cat >swap.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* "plain", "threads", "children" or "offered", rounds, milliseconds, two libraries */
static void *volatile kept;
static char **libraries;
static int rounds, ms;
static void swap(int first) {
  for (int i = first; i < first + rounds; i++) {
    void *library = dlopen(libraries[i % 2], RTLD_NOW);
    if (!library) { puts(dlerror()); _exit(1); }
    void *(*take)(void) = (void *(*)(void))dlsym(library, "plugin_take");
    for (int k = 0; k < 8; k++) kept = take();
    if (ms) usleep((useconds_t)ms * 1000);
    dlclose(library);
  }
}
/* Until a daemon has come: at the end of an interval, of 512 KiB in the mean. */
static void await(void) {
  for (int more = 200; more; more -= access("go", F_OK) == 0) {
    kept = malloc(65536);
    free(kept);
    usleep(1000);
  }
}
static void *run(void *first) { swap((int)(size_t)first); return NULL; }
int main(int count, char **arguments) {
  pthread_t thread[4];
  (void)count;
  rounds = atoi(arguments[2]);
  ms = atoi(arguments[3]);
  libraries = arguments + 4;
  if (strcmp(arguments[1], "offered") == 0) await();
  if (strcmp(arguments[1], "plain") == 0 || strcmp(arguments[1], "offered") == 0) swap(0);
  for (size_t i = 0; i < 4 && strcmp(arguments[1], "threads") == 0; i++) pthread_create(&thread[i], NULL, run, (void *)i);
  for (size_t i = 0; i < 4 && strcmp(arguments[1], "threads") == 0; i++) pthread_join(thread[i], NULL);
  /* A library is open when the children are forked, and replaced in both. */
  for (int i = 0; i < 8 && strcmp(arguments[1], "children") == 0; i++) {
    void *library = dlopen(libraries[i % 2], RTLD_NOW);
    for (int k = 0; k < 8; k++) kept = ((void *(*)(void))dlsym(library, "plugin_take"))();
    if (fork() == 0) {
      for (int k = 0; k < 8; k++) kept = ((void *(*)(void))dlsym(library, "plugin_take"))();
      if (i % 4 < 2) dlclose(library);
      swap(i + 1);
      _exit(0);
    }
    dlclose(library);
    swap(i + 1);
    waitpid(-1, NULL, WNOHANG);
  }
  while (wait(NULL) > 0) ;
  return 0;
}
C
  gcc -O1 -g -pthread -o swap swap.c -ldl
  stage
  chmod a+rwX -R .
}

# judge PROFILE...: counts blocks whose library is named right, wrong (by the size of its blocks), or not at all
judge() {
  local profile
  for profile; do
    "$heaptap" check "$profile" || fail "$profile is not valid"
    "$heaptap" export -f folded --sort alloc "$profile" | sed 's/^/bytes /'
    "$heaptap" export -f folded --sort objects "$profile" | sed 's/^/objects /'
  done >stacks
  awk '{ kind = $1; value = $NF; sub(/^[a-z]+ /, ""); sub(/ [0-9]+$/, ""); sum[kind, $0] += value; all[$0] = 1 }
    END {
      for (stack in all) {
        objects = sum["objects", stack]
        size = objects ? sum["bytes", stack] / objects : 0
        named = stack ~ /leaf_one|one\.so/ ? 1001 : stack ~ /leaf_two|two\.so/ ? 1002 : 0
        if (named && named != size) { wrong += objects; print "wrong: " objects " of " size " bytes: " stack >"/dev/stderr" }
        else if (named && stack ~ /leaf_/) right += objects
        else if (size > 1000 && size < 1003) unnamed += objects
      }
      print right + 0, wrong + 0, unnamed + 0
    }' stacks
}

# swap_by USER BACKEND MODE ROUNDS MS LEAST: no name is wrong, and at least LEAST blocks have theirs
swap_by() {
  local user=$1 right wrong unnamed
  rm -rf x
  mkdir x
  chmod a+rwx x
  $user "$heaptap" record -q -i 0 -p 1 -b "$2" -o x/ ./swap "$3" "$4" "$5" ./one.so ./two.so || fail "$*: status $?"
  read -r right wrong unnamed <<<"$(judge x/*.exit*.pb.gz)"
  equal 0 "$wrong" "wrong names, $* ($right right, $unnamed without)"
  at_least "$6" "$right" "right names, $* ($unnamed without)"
}

test_libraries_in_one_place() {
  make_programs
  local ms
  for ms in 0 5 20; do
    swap_by unprivileged auto plain 40 $ms 160
    swap_by '' copy plain 40 $ms 160
    swap_by '' walk plain 40 $ms 160
  done
}

test_libraries_in_one_place_by_threads() {
  make_programs
  swap_by unprivileged auto threads 40 0 1
  swap_by '' copy threads 40 2 1
  swap_by '' walk threads 40 2 1
}

test_libraries_in_one_place_of_children() {
  make_programs
  swap_by unprivileged auto children 4 0 1
  swap_by '' copy children 4 2 1
  swap_by '' walk children 4 2 1
}

# Nothing tells which file it was: its name and the address in it are right, what is in the file is not told.
test_libraries_without_a_build_id() {
  make_programs -Wl,--build-id=none
  swap_by unprivileged auto plain 40 0 0
  swap_by '' copy plain 40 5 0
  swap_by '' walk plain 40 20 0
}

# The daemon copies stacks, and reads no records.
test_libraries_in_one_place_with_a_daemon() {
  need_root
  make_programs
  . "$top/tests/daemon_lib.sh"
  cp swap bin/
  start_daemon
  local ms right wrong unnamed target
  for ms in 0 5; do
    rm -f go
    LD_PRELOAD=$PWD/bin/libheaptap.so bin/swap offered 40 $ms ./one.so ./two.so &
    target=$!
    wait_for 20 grep -q "pid $target " daemon.log
    touch go
    wait $target
    wait_for 20 profile_of $target exit
    read -r right wrong unnamed <<<"$(judge "$profile")"
    equal 0 "$wrong" "wrong names, $ms ms ($right right, $unnamed without)"
    at_least 160 "$right" "right names, $ms ms ($unnamed without)"
  done
  stop_daemon
}

# A dlclose that does no more than count down takes no lock of dl_iterate_phdr's, natively.
test_closing_beside_a_fork() {
  equal 0 "$("$targets/dlclose_beside" fork 300)" 'children that hang, natively'
  for backend in copy auto; do
    equal 0 "$("$heaptap" record -q -b $backend -o $backend.pb.gz "$targets/dlclose_beside" fork 300)" "children that hang, $backend"
    profile_check $backend.pb.gz
  done
}

test_closing_while_a_callback_of_the_loader_waits() {
  equal 'done' "$(timeout 60 "$targets/dlclose_beside" callback 100)" 'natively'
  equal 'done' "$(timeout 60 "$heaptap" record -q -o out.pb.gz "$targets/dlclose_beside" callback 100)" 'recorded'
}
