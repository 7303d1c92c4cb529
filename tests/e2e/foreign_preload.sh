# SPDX-License-Identifier: Apache-2.0
# What LD_PRELOAD and LD_AUDIT name is COMMAND's alone: heaptap's own processes run without it.
# timeout: 300

library_of() {
  local path
  path=$(ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }')
  [ -n "$path" ] || skip "no $1"
  echo "$path"
}

# starts LIBRARY OPTION...: 30 times; COMMAND has the library, and heaptap has nothing to say
starts() {
  local library=$1 round
  shift
  for round in $(seq 30); do
    LD_PRELOAD=$library record -q -o x.pb.gz "$@" grep -c "$(realpath "$library")" /proc/self/maps >mapped 2>err ||
      fail "round $round: status $?; $(cat err)"
    equal '' "$(cat err)" "messages in round $round"
  done
  "$heaptap" check x.pb.gz || fail 'not valid'
}

# They take a stack trace when the heap grows, by libunwind, which closes two descriptors in a process that was forked.
test_tcmalloc() { starts "$(library_of libtcmalloc.so.4)" -p 1; }
test_tcmalloc_copy() { starts "$(library_of libtcmalloc.so.4)" -b copy; }
test_tcmalloc_debug() { starts "$(library_of libtcmalloc_debug.so.4)" -p 4K; }
test_tcmalloc_debug_copy() { starts "$(library_of libtcmalloc_debug.so.4)" -b copy; }
test_jemalloc() { starts "$(library_of libjemalloc.so.2)" -p 4K; }

# mine: a library that writes down each program that calls it, and ends all but $MINE; as COMMAND's, it is in ./mine.so
mine() {
  cat >mine.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static void judge(void)
{
	const char *mine = getenv("MINE");
	if (mine && strcmp(program_invocation_short_name, mine) == 0)
		return;
	write(2, "mine.so: ", 9);
	write(2, program_invocation_short_name, strlen(program_invocation_short_name));
	write(2, "\n", 1);
	_exit(99);
}
__attribute__((constructor)) static void begin(void) { judge(); }
void *__tls_get_addr(void *where) { judge(); return NULL; }
C
  gcc -w -shared -fPIC -o mine.so mine.c
}

test_a_library_that_ends_others() {
  mine
  MINE=truth LD_PRELOAD=$PWD/mine.so record -q -p 1K -o x.pb.gz "$targets/truth" /dev/null 100 0 2>err ||
    fail "status $?: $(cat err)"
  equal '' "$(cat err)" messages
  profile_check x.pb.gz
  # Whoever is not COMMAND is ended as natively.
  equal 99 "$(MINE=truth LD_PRELOAD=$PWD/mine.so status_of record -q -o y.pb.gz true)"
  # Commands without a COMMAND.
  mkdir -m 700 run
  export MINE=nobody LD_PRELOAD=$PWD/mine.so
  equal 0 "$(status_of "$heaptap" report x.pb.gz)"
  equal 0 "$(status_of "$heaptap" check x.pb.gz)"
  equal 0 "$(status_of "$heaptap" push --dry-run --to pyroscope+http://127.0.0.1:9 x.pb.gz)"
  "$heaptap" daemon --store store --socket "$PWD/run/control" 2>daemon.log &
  daemon=$!
  "$heaptap" serve --listen "unix:$PWD/http" x.pb.gz 2>serve.log &
  serve=$!
  unset LD_PRELOAD
  wait_for 20 test -S run/control
  wait_for 20 curl -sf --unix-socket http http://localhost/ >/dev/null
  kill $daemon $serve
  wait
  equal 0 "$(cat daemon.log serve.log | grep -c mine.so)"
  # Those that record starts.
  mkfifo gate
  MINE=sh LD_PRELOAD=$PWD/mine.so "$heaptap" record -q --listen "unix:$PWD/beside" -o z.pb.gz \
    --push pyroscope+http://127.0.0.1:9 sh -c 'read -r word <gate' 2>err &
  wait_for 20 curl -sf --unix-socket beside http://localhost/ >/dev/null
  echo >gate
  wait $! || fail "status $?: $(cat err)"
  equal 0 "$(grep -c mine.so err)"
}

# Nothing of it in any process but COMMAND's.
test_an_auditor() {
  cat >audit.c <<'C'
unsigned int la_version(unsigned int version) { return version; }
C
  gcc -shared -fPIC -o audit.so audit.c
  mkfifo gate
  LD_AUDIT=$PWD/audit.so "$heaptap" record -q -o x.pb.gz sh -c 'echo ready >ready; read -r word <gate' &
  front=$!
  wait_for 20 test -s ready
  for each in $front $(child_of $front heaptap-sampler) $(child_of $front heaptap-witness) $(child_of $front heaptap-parent); do
    ! grep audit.so "/proc/$each/maps" || fail "it is in $(cat "/proc/$each/comm")"
  done
  grep -q audit.so "/proc/$(child_of $front sh)/maps" || fail "it is not in COMMAND"
  echo >gate
  wait $front
}

# The library's own entry apart, the environment is what it was, to the byte.
test_environment() {
  library=$(library_of libm.so.6)
  for value in "$library" "$library:" ":$library " "$library $library" "$library:/no/such.so" ''; do
    env -i A=1 LD_PRELOAD="$value" B=2 LD_AUDIT=: C='LD_PRELOAD=x' PATH="$PATH" cat /proc/self/environ 2>err.plain >plain
    env -i A=1 LD_PRELOAD="$value" B=2 LD_AUDIT=: C='LD_PRELOAD=x' PATH="$PATH" "$heaptap" record -q -o x.pb.gz cat /proc/self/environ 2>err >profiled
    tr '\0' '\n' <profiled | sed "s|^LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so:\{0,1\}|LD_PRELOAD=|; /^HEAPTAP=/d; /^ASAN_OPTIONS=/d" >got
    tr '\0' '\n' <plain | diff - got >&2 || fail "LD_PRELOAD='$value'"
  done
}

# The second execution of heaptap is not seen: names, descriptors, and what is asked for by the end of the parent.
test_the_second_execution_is_not_seen() {
  library=$(library_of libjemalloc.so.2)
  look() {
    "$@" bash -c 'exec -a odd "$@"' sh "$heaptap" record -q -o x.pb.gz bash -c 'ls -l /proc/self/fd | sed "s/.* \([0-9]* -> .*\)/\1/; s/[0-9]\{3,\}/N/g"
      front=$(awk "/^PPid/ { print \$2 }" /proc/$PPID/status)
      cat /proc/$front/comm; tr "\0" " " </proc/$front/cmdline; readlink /proc/$front/exe' 5</dev/null 7>err
  }
  look env | cat >without
  look env LD_PRELOAD="$library" | cat >with
  diff without with >&2 || fail 'it is'
  matches '^odd record -q' with
}

# Of heaptap's own library nothing is to be feared: a heaptap that is recorded is what it was.
test_a_heaptap_that_is_recorded() {
  mkfifo gate
  "$heaptap" record -q -p 4K -o outer/ "$heaptap" record -q -p 4K -o inner/ "$targets/trust_hold" ready &
  front=$!
  wait_for 20 test -e ready
  inner=$(child_of $front heaptap)
  grep -q libheaptap.so "/proc/$inner/maps" || fail 'the inner heaptap is not recorded'
  kill -TERM $front
  wait $front || :
  profile_check inner/heaptap.trust_hold.*.exit.pb.gz outer/heaptap.heaptap.*.exit.pb.gz
}

# It is done once at most, whatever is in the environment; and a library that keeps itself in it does no more than it did.
test_no_loop() {
  cat >stays.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
/* As programs that watch what a build executes. */
static char *again;
int execve(const char *path, char *const arguments[], char *const environment[])
{
	static char *changed[10000];
	int count = 0;
	for (; environment[count] && count < 9998; count++)
		changed[count] = environment[count];
	changed[count] = again;
	return (int)syscall(SYS_execve, path, arguments, changed);
}
__attribute__((constructor)) static void begin(void) { asprintf(&again, "LD_PRELOAD=%s", getenv("LD_PRELOAD")); }
C
  gcc -w -shared -fPIC -o stays.so stays.c
  equal 3 "$(LD_PRELOAD=$PWD/stays.so status_of timeout "$(seconds 20)" "$heaptap" record -q -o x.pb.gz sh -c 'exit 3')"
  equal 3 "$(status_of timeout "$(seconds 20)" env LD.AUDIT= LD.PRELOAD= LD_PRELOAD="$PWD/stays.so" "$heaptap" record -q -o x.pb.gz sh -c 'exit 3')"
}

# A sampler that cannot go on says why.
test_the_sampler_says_its_error() {
  cat >broken.c <<'C'
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <stdlib.h>
int epoll_wait(int fd, struct epoll_event *events, int room, int timeout) { errno = EINVAL; return -1; }
C
  gcc -shared -fPIC -o broken.so broken.c
  preload_heaptap "$PWD/broken.so"
  equal 4 "$(status_of record -q sh -c 'exit 4')"
  matches '^heaptap: the sampler cannot wait for events: Invalid argument$' err
}

# Whoever takes LD_PRELOAD out of an environment does not know the names that it has between the two executions.
test_names_that_nobody_takes_out() {
  for name in LD.PRELOAD LD.AUDIT; do
    env "$name=/x.so" "$heaptap" record -q -o x.pb.gz env >variables
    matches "^$name=/x.so\$" variables
    ! grep -E '^LD_(PRELOAD|AUDIT)=.*/x.so' variables || fail "$name was believed"
    env "$name=/x.so" LD_PRELOAD=/y.so "$heaptap" record -q -o x.pb.gz env >variables 2>/dev/null
    ! grep -E '^LD_(PRELOAD|AUDIT)=.*/x.so' variables || fail "$name was believed beside LD_PRELOAD"
  done
}
