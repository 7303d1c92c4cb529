# SPDX-License-Identifier: Apache-2.0
# ELF code that is no mapping of a named file: a file in memory, and code that its program moved to anonymous memory.

make_library() {
  cat >plug.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) void *plug_inner(size_t size) { void *block = malloc(size); __asm__ volatile("" : "+r"(block)); return block; }
__attribute__((noinline)) void plug_entry(int count) { while (count--) { void *block = plug_inner(90); __asm__ volatile("" : "+r"(block)); } }
C
  gcc -O1 -g -shared -fPIC -o plug.so plug.c
}

# bytes_of PROFILE STACK: that are allocated by exactly this stack
bytes_of() { "$heaptap" export -f folded --sort alloc "$1" >folded; awk -v stack="^$2 [0-9]+$" '$0 ~ stack { sum += $NF } END { print sum + 0 }' folded; }

# each_user FUNCTION...: as root and as a user; a user may not open what another process maps
each_user() {
  local user
  for user in '' unprivileged; do
    "$@" "$user"
    if [ "$(id -u)" != 0 ]; then break; fi
  done
}

# Of a program: the sampler reads what has come, while the program is there.
cat >pause.h <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
static void pause_here(void) { char line[9]; puts("ready"); fflush(stdout); if (!fgets(line, sizeof(line), stdin)) _exit(1); }
C

# profile_of PROFILE USER COMMAND...: by $backend; COMMAND pauses $pauses times
profile_of() {
  local profile=$1 user=$2 n
  shift 2
  rm -f "$profile" "${profile%.pb.gz}"-*.pb.gz in
  mkfifo in
  chmod a+rw in
  : >out
  $user sh -c 'echo $$ >&2; exec "$@"' sh "$heaptap" record -q -i 0 -p 1 -b "$backend" -o "$profile" "$@" <in >out 2>pid &
  exec 7>in
  is_ready() { [ "$(grep -c ready out)" -ge "$n" ]; }
  for ((n = 1; n <= pauses; n++)); do
    wait_for 20 is_ready
    kill -USR1 "$(head -1 pid)"
    wait_for 20 test -s "${profile%.pb.gz}-000$n.pb.gz"
    echo go >&7
  done
  exec 7>&-
  wait $! || { cat pid >&2; fail "status $?"; }
  "$heaptap" check "$profile" || fail 'not valid'
}

memory_library() {
  local pauses=1
  for backend in auto copy; do
    profile_of x.pb.gz "$1" ./host ./plug.so
    equal 90000 "$(bytes_of x.pb.gz '.*main;host;plug_entry;plug_inner')" "bytes of a library in memory, $backend, ${1:-root}"
    profile_of x.pb.gz "$1" ./start ./plain plain
    equal 90000 "$(bytes_of x.pb.gz '.*main;plain')" "bytes of a program in memory, $backend, ${1:-root}"
  done
}

# What a JVM, a packer or a sandbox does: the library or the program is in a file that only its process has.
test_file_in_memory() {
  make_library
  cat >host.c <<'C'
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((noinline)) static void host(void (*entry)(int)) { entry(1000); __asm__ volatile(""); }
int main(int count, char **arguments) {
  int from = open(arguments[1], O_RDONLY), to = memfd_create("plugin", MFD_CLOEXEC);
  struct stat status;
  char path[64];
  fstat(from, &status);
  if (sendfile(to, from, 0, status.st_size) != status.st_size) return 1;
  if (count > 2) { fexecve(to, arguments + 2, environ); return 1; }
  snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
  void *library = dlopen(path, RTLD_NOW);
  if (!library) { puts(dlerror()); return 1; }
  close(to);
  host((void (*)(int))dlsym(library, "plug_entry"));
  pause_here();
  return 0;
}
C
  cat >plain.c <<'C'
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void plain(int count) { while (count--) { void *block = malloc(90); __asm__ volatile("" : "+r"(block)); } }
int main(void) { plain(1000); pause_here(); return 0; }
C
  gcc -O1 -g -o host -include pause.h host.c -ldl
  ln host start
  gcc -O1 -g -o plain -include pause.h plain.c
  stage
  chmod a+rwx .
  chmod a+rX -R .
  each_user memory_library
}

moved_text() {
  local program pauses=2
  for program in ./mover ./mover_whole ./mover_lld; do
    [ -x $program ] || continue
    for backend in auto copy; do
      profile_of x.pb.gz "$1" $program
      equal 90000 "$(bytes_of x.pb.gz '.*main;before;work')" "bytes before, $program, $backend, ${1:-root}"
      equal 90000 "$(bytes_of x.pb.gz '.*main;after;work')" "bytes after, $program, $backend, ${1:-root}"
    done
  done
}

# What node --use-largepages, ClickHouse and iodlr do: the code is copied to memory that may have huge pages.
test_text_moved_to_anonymous_memory() {
  cat >mover.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static __attribute__((noinline)) void work(void) { for (int i = 0; i < 1000; i++) { void *block = malloc(90); __asm__ volatile("" : "+r"(block)); } }
static __attribute__((noinline)) void before(void) { work(); __asm__ volatile(""); }
static __attribute__((noinline)) void after(void) { work(); __asm__ volatile(""); }
/* Code in between, so that what is moved has some pages. */
__asm__(".pushsection .text.z,\"ax\"; .fill 40000,1,0x90; .popsection");
static __attribute__((noinline)) int move(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  uintptr_t start = 0, end = 0;
  while (fgets(line, sizeof(line), maps)) {
    if (sscanf(line, "%lx-%lx r-xp", &start, &end) == 2 && strstr(line, " r-xp ") && start <= (uintptr_t)move && (uintptr_t)move < end) break;
  }
  fclose(maps);
  start += SKIP;
  char *copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, (void *)start, end - start);
  if (mprotect(copy, end - start, PROT_READ | PROT_EXEC)) return 1;
  return mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED;
}
int main(void) {
  before();
  if (move()) return 1;
  pause_here();
  after();
  pause_here();
  return 0;
}
C
  gcc -O1 -g -DSKIP=4096 -o mover -include pause.h mover.c
  gcc -O1 -g -DSKIP=0 -o mover_whole -include pause.h mover.c
  gcc -O1 -g -DSKIP=0 -fuse-ld=lld -o mover_lld -include pause.h mover.c
  stage
  chmod a+rwx .
  chmod a+rX -R .
  each_user moved_text
}

# By copy the newest code may not be in the maps yet.
jit_code() {
  local made='\[jit\].*' pauses=1
  for backend in auto copy; do
    profile_of x.pb.gz "$1" ./jit
    [ $backend = auto ] || made='.*\[(jit|unknown mapping)\]'
    equal 90000 "$(bytes_of x.pb.gz ".*$made")" "bytes of made code, $backend, ${1:-root}"
  done
}

# Code made at run time in a file in memory, mapped twice, stays what it is.
test_code_made_in_a_file_in_memory() {
  cat >jit.c <<'C'
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  int fd = memfd_create("doublemapper", MFD_CLOEXEC);
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0xbf, 90, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
  if (ftruncate(fd, 1 << 20)) return 1;
  for (int n = 0; n < 10; n++) {
    char *write = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, n * 8192);
    memcpy(write, code, sizeof(code));
    void *(*run)(void *) = (void *(*)(void *))mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, n * 8192);
    for (int i = 0; i < 100; i++) { void *block = run((void *)malloc); __asm__ volatile("" : "+r"(block)); }
  }
  pause_here();
  return 0;
}
C
  need_x86_64 'the code in it'
  gcc -O1 -g -fno-omit-frame-pointer -o jit -include pause.h jit.c
  stage
  chmod a+rwx .
  chmod a+rX -R .
  each_user jit_code
}

other_code() {
  local pauses=2
  for backend in auto copy; do
    profile_of x.pb.gz "$1" ./other
    equal 0 "$(bytes_of x.pb.gz '.*filler.*')" "bytes with the name of what was there before, $backend, ${1:-root}"
    equal 90000 "$(bytes_of x.pb.gz '.*\[(jit|unknown mapping)\].*')" "bytes of the code, $backend, ${1:-root}"
  done
}

# A program puts other code where its own was, as one that makes code near its own does: it is not called what was there before.
# By copy the sampler reads the maps now and then, on a busy machine later than the stacks: so the program pauses first.
test_other_code_in_place_of_the_files() {
  need_x86_64 'the code in it'
  cat >other.c <<'C'
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
extern char filler[];
__asm__(".pushsection .text.z,\"ax\"; .balign 4096; .globl filler; .type filler,@function; filler: .fill 16384,1,0x90; .size filler,16384; .popsection");
int main(void) {
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0xbf, 90, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
  char *at = filler + 4096;
  if (mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) return 1;
  memset(at, 0xcc, 8192);
  memcpy(at, code, sizeof(code));
  if (mprotect(at, 8192, PROT_READ | PROT_EXEC)) return 1;
  pause_here();
  for (int i = 0; i < 1000; i++) { void *block = ((void *(*)(void *))(uintptr_t)at)((void *)malloc); __asm__ volatile("" : "+r"(block)); }
  pause_here();
  return 0;
}
C
  gcc -O1 -g -fno-omit-frame-pointer -o other -include pause.h other.c
  stage
  chmod a+rwx .
  chmod a+rX -R .
  each_user other_code
}
