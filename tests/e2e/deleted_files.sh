# SPDX-License-Identifier: Apache-2.0
# Code whose file is gone or replaced, without root's rights: root is given the file by the kernel.

# What the library's file alone has is one function, a static one.
make_programs() {
  cat >plug.c <<'C'
#include <stdlib.h>
static __attribute__((noinline)) void *plug_static(size_t size) { void *block = malloc(size); __asm__ volatile("" : "+r"(block)); return block; }
__attribute__((noinline)) void *plug_inner(size_t size) { void *block = plug_static(size); __asm__ volatile("" : "+r"(block)); return block; }
__attribute__((noinline)) void plug_entry(int count) { while (count--) { void *block = plug_inner(90); __asm__ volatile("" : "+r"(block)); } }
C
  cat >more.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) void *more(void) { void *block = malloc(10); __asm__ volatile("" : "+r"(block)); return block; }
C
  cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static void host(void (*entry)(int)) { entry(1000); __asm__ volatile(""); }
int main(int count, char **arguments) {
  for (int i = 1; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    if (unlink(arguments[i])) return 1;
    host((void (*)(int))dlsym(library, "plug_entry"));
  }
  char line[9];
  puts("ready");
  fflush(stdout);
  return !fgets(line, sizeof(line), stdin);
}
C
  # Calls the library, waits for a line, loads another library, so that the sampler looks what is mapped, and calls again.
  cat >server.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
void plug_entry(int count);
__attribute__((noinline)) static void before(void) { plug_entry(1000); __asm__ volatile(""); }
__attribute__((noinline)) static void after(void) { plug_entry(1000); __asm__ volatile(""); }
int main(int count, char **arguments) {
  char line[9];
  if (strcmp(arguments[1], "before") == 0) before();
  puts("ready");
  fflush(stdout);
  if (!fgets(line, sizeof(line), stdin)) return 1;
  void *library = dlopen(arguments[2], RTLD_NOW);
  if (!library) return 1;
  ((void *(*)(void))dlsym(library, "more"))();
  after();
  return 0;
}
C
  gcc -O1 -g -shared -fPIC -o more.so more.c
  gcc -O1 -g -o host host.c -ldl
  gcc -O1 -g -shared -fPIC -Wl,--build-id -o plug.so plug.c
  gcc -O1 -g -shared -fPIC -Wl,--build-id -o plug.new plug.c -Wl,--defsym=other=0
  cp plug.so libplug.so
  gcc -O1 -g -o server server.c -L. -lplug -ldl -Wl,-rpath,"$PWD"
  stage
  chmod a+rwx .
  chmod a+rX -R .
}

# bytes_of PROFILE STACK: that are allocated by exactly this end of a stack
bytes_of() { "$heaptap" export -f folded --sort alloc "$1" >folded; awk -v end=";$2 [0-9]+$" '$0 ~ end { sum += $NF } END { print sum + 0 }' folded; }

# What a JVM, Python and packers do with their libraries.
test_unlinked_after_dlopen() {
  make_programs
  local layout number=0
  for layout in -Wl,--build-id -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,--hash-style=sysv -fuse-ld=gold -fuse-ld=lld; do
    gcc -O1 -shared -fPIC "$layout" -o plug.so plug.c 2>log || continue
    for backend in auto copy; do
      number=$((number + 1))
      for one in 1 2 3; do unprivileged cp plug.so gone$one.so; done
      rm -f in out
      mkfifo in
      chmod a+rw in
      unprivileged sh -c 'echo $$ >&2; exec "$@"' sh "$heaptap" record -q -i 0 -p 1 -b $backend -o x$number.pb.gz \
        ./host ./gone1.so ./gone2.so ./gone3.so <in >out 2>pid &
      exec 7>in
      wait_for 20 grep -q ready out
      kill -USR1 "$(cat pid)" # what is waiting to be read is read while the process is there
      wait_for 20 test -s x$number-0001.pb.gz
      echo go >&7
      exec 7>&-
      wait $!
      "$heaptap" check x$number.pb.gz || fail 'not valid'
      # plug_static is in the file's symbol table alone. The file is gone, unless it was opened just in time.
      equal 270000 "$(bytes_of x$number.pb.gz 'main;host;plug_entry;plug_inner;(plug_static|gone[123]\.so\+0x[0-9a-f]+)')" "bytes with $layout, $backend"
    done
  done
  at_least 6 $number 'runs'
}

# serve PROFILE FIRST NEW BACKEND: the library is replaced by NEW (or removed: none) while the program waits
serve() {
  cp plug.so libplug.so
  rm -f in out
  mkfifo in
  chmod a+rw in
  unprivileged "$heaptap" record -q -i 0 -p 1 -b "$4" -o "$1" ./server "$2" ./more.so <in >out &
  local front=$!
  exec 7>in
  wait_for 20 grep -q ready out
  if [ "$3" = none ]; then rm libplug.so; else cp "$3" new && mv new libplug.so; fi
  echo go >&7
  exec 7>&-
  wait $front
  "$heaptap" check "$1" || fail 'not valid'
}

# The program and its library have been removed before the sampler gets a CPU: it stands still meanwhile. The bytes stay, and
# why there is no name is said.
test_removed_before_the_sampler_looks() {
  make_programs
  gcc -O1 -g -o brief -xc - -L. -lplug -Wl,-rpath,'$ORIGIN' <<'C'
void plug_entry(int count);
int main(void) { plug_entry(1000); return 0; }
C
  mkdir away
  cp brief libplug.so away/
  chmod -R a+rwX away
  unprivileged "$heaptap" record -q -i 0 -p 1 -o out/ sh -c 'sampler=${HEAPTAP#/proc/}; sampler=${sampler%%/*}
    kill -STOP $sampler; ./away/brief; rm -r away/*; kill -CONT $sampler'
  profile=$(echo out/*.brief.*exit*)
  "$heaptap" check "$profile" || fail 'not valid'
  equal 90000 "$(bytes_of "$profile" 'libplug\.so\+0x[0-9a-f]+')" bytes
  comment_of "$profile" | grep -qx 'functions of libplug.so have no names: its file was removed before heaptap could open it' ||
    { comment_of "$profile" >&2; fail 'not said'; }
}

# A package upgrade under a running service: the file was open already, so nothing is lost.
test_replaced_under_a_service() {
  make_programs
  local new backend
  for backend in auto copy; do
    for new in plug.so plug.new none; do
      serve x.pb.gz before $new $backend
      for when in before after; do
        equal 90000 "$(bytes_of x.pb.gz "main;$when;plug_entry;plug_inner;plug_static")" "bytes $when, $new, $backend" 
      done
      rm x.pb.gz
    done
  done
}

# Somebody attaches to a service whose library was upgraded before: what is known is said, and what is not has its address.
test_attached_after_an_upgrade() {
  need_x86_64 attaching
  make_programs
  local new pid front leaf
  for new in plug.so plug.new none; do
    cp plug.so libplug.so
    rm -f in out x.pb.gz
    mkfifo in
    chmod a+rw in
    unprivileged sh -c 'echo $$ >&2; exec "$@"' sh ./server after ./more.so <in >out 2>pid &
    exec 7>in
    wait_for 20 grep -q ready out
    pid=$(cat pid)
    if [ $new = none ]; then rm libplug.so; else cp $new new && mv new libplug.so; fi
    unprivileged "$heaptap" record -i 0 -p 1 -o x.pb.gz -P $pid >log 2>&1 &
    front=$!
    wait_for 40 grep -qE 'attached|not' log
    echo go >&7
    exec 7>&-
    wait $front || { cat log >&2; fail 'not attached'; }
    "$heaptap" check x.pb.gz || fail 'not valid'
    leaf='libplug\.so\+0x[0-9a-f]+'
    [ $new != plug.so ] || leaf=plug_static # by its build id it is the same one
    equal 90000 "$(bytes_of x.pb.gz "main;after;plug_entry;plug_inner;$leaf")" "bytes, $new" 
  done
}

# Each security update of the C library leaves all services that run with one that is deleted. Where a thread stands can
# still be told, so it is attached to at once.
test_attached_after_an_update_of_the_c_library() {
  need_x86_64 attaching
  local libc loader
  libc=$(ldd /bin/true | awk '/libc\.so\.6/ { print $3 }')
  loader=$(ldd /bin/true | awk '/ld-linux/ { print $1 }')
  cat >poller.c <<'C'
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) static void work(void) { for (int i = 0; i < 1000; i++) kept = malloc(90); __asm__ volatile(""); }
int main(void) {
  struct pollfd input = {0, POLLIN, 0};
  puts("ready");
  fflush(stdout);
  while (poll(&input, 1, 50) == 0) ;
  work();
  return 0;
}
C
  mkdir own
  cp "$libc" "$loader" own/
  gcc -O1 -g -o poller poller.c -Wl,-rpath,"$PWD/own" -Wl,--dynamic-linker="$PWD/own/${loader##*/}"
  stage
  chmod a+rX -R .
  chmod a+rwx .
  mkfifo in
  chmod a+rw in
  unprivileged sh -c 'echo $$ >&2; exec "$@"' sh ./poller <in >out 2>pid &
  exec 7>in
  wait_for 20 grep -q ready out
  cp "$libc" own/new && mv own/new own/libc.so.6
  unprivileged "$heaptap" record -i 0 -p 1 -o x.pb.gz -P "$(cat pid)" >log 2>&1 &
  local front=$!
  wait_for 40 grep -qE 'attached|not' log
  echo go >&7
  exec 7>&-
  wait $front || { cat log >&2; fail 'not attached'; }
  "$heaptap" check x.pb.gz || fail 'not valid'
  equal 90000 "$(bytes_of x.pb.gz 'main;work')" bytes
}
