/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as they are on this machine, scripts in front of them, and headers that are changed one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/inject/preload_check.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[] = "/tmp/heaptap-preload-check.XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *write_file(const char *name, const void *data, size_t bytes)
{
	const char *path = in_folder(name);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	return path;
}

static const char *write_script(const char *name, const char *first_line)
{
	return write_file(name, first_line, strlen(first_line));
}

static void programs_of_this_machine(void **state)
{
	assert_int_equal(preload_check_inspect("/bin/cat"), PRELOAD_CHECK_DYNAMIC);
	assert_int_equal(preload_check_inspect("sh"), PRELOAD_CHECK_DYNAMIC);
	assert_int_equal(preload_check_inspect("no-such-command"), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(preload_check_inspect("/nonexistent/x"), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(preload_check_inspect("/dev/zero"), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(preload_check_inspect("/"), PRELOAD_CHECK_UNKNOWN);
	/* The loader is a program without a loader, and preloads all the same. */
	assert_int_equal(preload_check_inspect("/lib64/ld-linux-x86-64.so.2"), PRELOAD_CHECK_UNKNOWN);
}

/* It would block whoever opens it to write (alarm() makes that a failure), and so do some devices; others do
 * something when they are opened. */
static void a_fifo_is_not_opened(void **state)
{
	char event[4096];
	const int notices = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_int_equal(mkfifo(in_folder("fifo"), 0700), 0);
	assert_true(inotify_add_watch(notices, in_folder("fifo"), IN_OPEN) >= 0);
	alarm(20);
	assert_int_equal(preload_check_inspect(in_folder("fifo")), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(read(notices, event, sizeof(event)), -1);
	close(open(in_folder("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); /* that is seen */
	assert_true(read(notices, event, sizeof(event)) > 0);
	alarm(0);
	close(notices);
}

static void scripts_lead_to_their_interpreters(void **state)
{
	char first_line[160];

	assert_int_equal(preload_check_inspect(write_script("s", "#!/bin/sh\n")), PRELOAD_CHECK_DYNAMIC);
	assert_int_equal(
	    preload_check_inspect(write_script("s", "#! \t/bin/sh -eu\n")), PRELOAD_CHECK_DYNAMIC);
	assert_int_equal(preload_check_inspect(write_script("s", "#!\nx")), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(preload_check_inspect(write_script("s", "#!/nonexistent\n")), PRELOAD_CHECK_UNKNOWN);
	assert_int_equal(preload_check_inspect(write_script("s", "echo\n")), PRELOAD_CHECK_UNKNOWN);
	/* Its own interpreter: the kernel gives up after some rounds, and so do we. */
	snprintf(first_line, sizeof(first_line), "#!%s\n", in_folder("self"));
	assert_int_equal(preload_check_inspect(write_script("self", first_line)), PRELOAD_CHECK_UNKNOWN);
}

struct program {
	Elf64_Ehdr elf;
	Elf64_Phdr segment[2];
};

static struct program dynamic_program(void)
{
	struct program p = {
	    .elf = {.e_type = ET_DYN,
	        .e_phoff = sizeof(p.elf),
	        .e_phentsize = sizeof(p.segment[0]),
	        .e_phnum = 2},
	    .segment = {{.p_type = PT_INTERP}, {.p_type = PT_DYNAMIC}},
	};

	memcpy(p.elf.e_ident, ELFMAG, SELFMAG);
	p.elf.e_ident[EI_CLASS] = ELFCLASS64;
	p.elf.e_ident[EI_DATA] = ELFDATA2LSB;
#ifdef __aarch64__
	p.elf.e_machine = EM_AARCH64;
#else
	p.elf.e_machine = EM_X86_64;
#endif
	return p;
}

static enum preload_check_kind inspect(const struct program *p, size_t bytes)
{
	return preload_check_inspect(write_file("program", p, bytes));
}

static void musl_is_known_by_its_loader(void **state)
{
	struct {
		struct program p;
		char path[32];
	} file = {.p = dynamic_program(), .path = "/lib/ld-musl-x86_64.so.1"};

	file.p.segment[0].p_offset = sizeof(file.p);
	file.p.segment[0].p_filesz = sizeof(file.path);
	assert_int_equal(
	    preload_check_inspect(write_file("program", &file, sizeof(file))), PRELOAD_CHECK_MUSL);
	assert_null(preload_check_obstacle(PRELOAD_CHECK_MUSL));
	/* A path without an end, and one that is not there. */
	memset(file.path, 'x', sizeof(file.path));
	assert_int_equal(
	    preload_check_inspect(write_file("program", &file, sizeof(file))), PRELOAD_CHECK_DYNAMIC);
	file.p.segment[0].p_offset = UINT64_MAX;
	assert_int_equal(
	    preload_check_inspect(write_file("program", &file, sizeof(file))), PRELOAD_CHECK_DYNAMIC);
}

static void headers_tell(void **state)
{
	struct program p = dynamic_program();

	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_DYNAMIC);
	p.segment[0].p_type = PT_LOAD;
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_STATIC); /* static-pie */
	p.elf.e_type = ET_EXEC;
	p.segment[1].p_type = PT_LOAD;
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_STATIC);
	p = dynamic_program();
	p.elf.e_machine = EM_RISCV;
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_FOREIGN);
	p = dynamic_program();
	p.elf.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_FOREIGN);
	p = dynamic_program();
	p.elf.e_phentsize = 1;
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_UNKNOWN);
	p = dynamic_program();
	p.elf.e_phoff = UINT64_MAX - 8; /* no offset of a file */
	assert_int_equal(inspect(&p, sizeof(p)), PRELOAD_CHECK_UNKNOWN);
	p = dynamic_program();
	assert_int_equal(inspect(&p, sizeof(p) - 1), PRELOAD_CHECK_UNKNOWN);
	for (size_t bytes = 0; bytes < sizeof(p.elf); bytes++)
		assert_int_equal(inspect(&p, bytes), PRELOAD_CHECK_UNKNOWN);
}

static unsigned int preads;

/* Counts those of the sampler. */
ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
	preads++;
	return (ssize_t)syscall(SYS_pread64, fd, data, bytes, at);
}

/* A file that names its strings a thousand times, behind a thousand program headers. */
static void a_hostile_file_is_read_once(void **state)
{
	enum { HEADERS = 1170, ENTRIES = 1024 };

	static struct {
		Elf64_Ehdr elf;
		Elf64_Phdr segment[HEADERS];
		Elf64_Dyn entry[ENTRIES];
	} hostile;

	hostile.elf = dynamic_program().elf;
	hostile.elf.e_phnum = HEADERS;
	hostile.segment[0].p_type = PT_INTERP;
	hostile.segment[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
	    .p_offset = (size_t)((char *)hostile.entry - (char *)&hostile),
	    .p_filesz = sizeof(hostile.entry)};
	for (size_t i = 0; i < ENTRIES; i++)
		hostile.entry[i] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = 0x400000};
	preads = 0;
	assert_int_equal(
	    preload_check_inspect(write_file("program", &hostile, sizeof(hostile))), PRELOAD_CHECK_DYNAMIC);
	assert_in_range(preads, HEADERS,
	    2 * HEADERS + 3); /* the headers twice, the file's, the loader's name, the entries */
}

static void who_gains_privileges_is_not_preloaded_into(void **state)
{
	struct program p = dynamic_program();
	const char *path = write_file("setuid", &p, sizeof(p));

	if (geteuid() != 0) {
		print_message("SKIPPED: not root, who alone can give a file away\n");
		skip();
	}
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(preload_check_inspect(path), PRELOAD_CHECK_PRIVILEGED);
	assert_int_equal(chmod(path, 02755), 0);
	assert_int_equal(preload_check_inspect(path), PRELOAD_CHECK_PRIVILEGED);
	/* Setgid without the right to execute means mandatory locking. */
	assert_int_equal(chmod(path, 02745), 0);
	assert_int_equal(preload_check_inspect(path), PRELOAD_CHECK_DYNAMIC);
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chmod(path, 06755), 0);
	assert_int_equal(preload_check_inspect(path), PRELOAD_CHECK_DYNAMIC);
	/* Another user gains them, unless that was given up. */
	struct preload_check_who who = {.uid = 65534, .gid = 65534};
	assert_int_equal(preload_check_inspect_by(path, &who), PRELOAD_CHECK_PRIVILEGED);
	who.no_new_privs = true;
	assert_int_equal(preload_check_inspect_by(path, &who), PRELOAD_CHECK_DYNAMIC);
	who.preload = "/usr/lib/libasan.so.8";
	assert_int_equal(preload_check_inspect_by(path, &who), PRELOAD_CHECK_SANITIZER);
}

static void obstacles_have_words(void **state)
{
	assert_null(preload_check_obstacle(PRELOAD_CHECK_DYNAMIC));
	assert_null(preload_check_obstacle(PRELOAD_CHECK_UNKNOWN));
	assert_non_null(preload_check_obstacle(PRELOAD_CHECK_STATIC));
	assert_non_null(preload_check_obstacle(PRELOAD_CHECK_PRIVILEGED));
	assert_non_null(preload_check_obstacle(PRELOAD_CHECK_FOREIGN));
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"fifo", "s", "self", "program", "setuid"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_folder(names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(programs_of_this_machine),
	    cmocka_unit_test(a_fifo_is_not_opened),
	    cmocka_unit_test(scripts_lead_to_their_interpreters),
	    cmocka_unit_test(musl_is_known_by_its_loader),
	    cmocka_unit_test(headers_tell),
	    cmocka_unit_test(a_hostile_file_is_read_once),
	    cmocka_unit_test(who_gains_privileges_is_not_preloaded_into),
	    cmocka_unit_test(obstacles_have_words),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
