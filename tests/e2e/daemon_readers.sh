# SPDX-License-Identifier: Apache-2.0
# Files of others that make libdw crash, run for ever, or do what their author wants: a library in front of libdw stands for
# the fault in it that nobody knows yet. The daemon lives, can be harmed in nothing, and what it says of others is right.
# timeout: 240

. "$top/tests/daemon_lib.sh"

# make_fault: what dwarf_begin_elf does with a file that has the section .taken, .endless or .asleep
make_fault() {
  cat >fault.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct { void *at; size_t bytes; } shared[64];
static int shared_count;

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
	void *got = real(at, bytes, protection, flags, fd, offset);
	if (got != MAP_FAILED && (flags & MAP_TYPE) == MAP_SHARED && (protection & PROT_WRITE) && shared_count < 64) {
		shared[shared_count].at = got;
		shared[shared_count++].bytes = bytes;
	}
	return got;
}

static bool has(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr header;
	elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section)))
		if (strcmp(elf_strptr(elf, names, gelf_getshdr(section, &header)->sh_name), name) == 0)
			return true;
	return false;
}

/* Each success is written down, by whoever can still write. */
static void succeeded(const char *at)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/succeeded-%s", getenv("FAULT_FOLDER"), at);
	close(open(path, O_CREAT | O_WRONLY, 0644));
}

static void take_over(void)
{
	succeeded("open");
	if (fork() >= 0)
		succeeded("fork");
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		succeeded("socket");
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		succeeded("code");
	kill(getppid(), SIGKILL);
	for (int i = 0; i < shared_count; i++)
		memset(shared[i].at, 0xff, shared[i].bytes < 65536 ? shared[i].bytes : 65536);
	abort();
}

Dwarf *dwarf_begin_elf(Elf *elf, Dwarf_Cmd command, Elf_Scn *group)
{
	Dwarf *(*real)(Elf *, Dwarf_Cmd, Elf_Scn *) = dlsym(RTLD_NEXT, "dwarf_begin_elf");
	if (has(elf, ".taken"))
		take_over();
	while (has(elf, ".endless"))
		;
	while (has(elf, ".asleep")) {
		char byte;
		for (int fd = 0; fd < 1024; fd++) /* of the two that are open, the socket waits */
			recv(fd, &byte, 1, 0);
	}
	return real(elf, command, group);
}
C
  gcc -shared -fPIC -O1 -o fault.so fault.c -ldl
  cat >faulty.c <<'C'
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) void hold_faulty(void) { kept = malloc(1000); }
int main(int argc, char *argv[])
{
	while (access(argv[1], F_OK) != 0) {
		hold_faulty();
		usleep(10000);
	}
	return 0;
}
C
}

# begin_faulty NAME: a program of another build that has the section .NAME
begin_faulty() {
  echo x >section
  gcc -g -O1 -Wl,--build-id=0x1234$(printf %s "$1" | od -An -tx1 | tr -d ' ') -o full faulty.c
  objcopy --add-section ".$1=section" full "bin/$1"
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/$1" end &
  faulty=$!
}

# As it was before there were faults: exact, and with lines.
check_good() {
  kill -0 "$daemon" || { cat daemon.log >&2; fail 'the daemon has died'; }
  reached_exactly "$1" hold 'inuse_space 1000000' 'inuse_objects 1000'
  go tool pprof -raw "$1" 2>/dev/null | grep -qE ' hold .*daemon_steps\.c:[1-9]' || fail 'the lines of the good one are lost'
}

begin_all() {
  command -v objcopy >/dev/null || skip 'no objcopy'
  stage daemon_steps daemon_offer
  make_fault
  configure '[service faulty]' "match.exe = $PWD/nowhere"
  export XDG_CACHE_HOME=$PWD/cache
  preload_heaptap "$PWD/fault.so"
  FAULT_FOLDER=$PWD start_daemon
  carry on hold 1000 1000 touch held await end &
  good=$!
  wait_for 40 test -e held
  begin_faulty "$1"
  taken() { grep -q "pid $faulty " daemon.log; }
  wait_for 40 taken
}

# snapshot_both: sets profile (of the good one) and faulty_profile, which takes some samples
snapshot_both() {
  snapshot_all "$good"
  of_faulty() { kill -USR1 "$daemon"; sleep 0.5; faulty_profile=$(ls -t store/steps/*/*."$faulty".*.pb.gz 2>/dev/null | grep -v peak | head -n 1) && [ -n "$faulty_profile" ]; }
  wait_for 40 of_faulty
}

end_all() {
  touch end
  wait "$good" "$faulty" || :
  stop_daemon
}

test_a_file_that_takes_over_its_reader() {
  begin_all taken
  snapshot_both
  ls succeeded-* 2>/dev/null && fail 'the reader of a file could do that'
  check_good "$profile"
  go tool pprof -raw "$faulty_profile" 2>/dev/null | grep -q ' hold_faulty' || fail 'not even its symbol table was read'
  snapshot_all "$good"
  check_good "$profile"
  end_all
}

test_a_file_that_never_ends() {
  begin_all endless
  prlimit --pid "$daemon" --cpu=5:5 # the reader's limit is no higher
  snapshot_both
  check_good "$profile"
  go tool pprof -raw "$faulty_profile" 2>/dev/null | grep -q ' hold_faulty' || fail 'not even its symbol table was read'
  end_all
}

# Sleeping takes no CPU time.
test_a_file_that_never_answers() {
  begin_all asleep
  snapshot_both
  check_good "$profile"
  go tool pprof -raw "$faulty_profile" 2>/dev/null | grep -q ' hold_faulty' || fail 'not even its symbol table was read'
  end_all
}
