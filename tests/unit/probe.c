/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger's note: of this very program, of files that lie, and of the real library. And that its page
 * stays in the page cache while a uprobe stands on it.
 *
 * Then rounds over the threads of a real process, this one, that creates threads while they are gone over.
 * There are no perf events in them: `thread` only notes who was asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/perf/probe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the trigger */

/* As preload/ has it: address, base, semaphore, provider, name, arguments. A note of somebody else in
 * front. */
#define NOTE(provider, address)                                                                            \
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 2f-1f, 3\n.asciz \"stapsdt\"\n1: " \
	".8byte " address ", 0, 0\n.asciz \"" provider                                                     \
	"\"\n.asciz \"trigger\"\n.asciz \"\"\n2: .balign 4\n.popsection\n"
__asm__(".pushsection .text\nown_trigger: nop\n.popsection\n" NOTE("another", "1")
        NOTE("heaptap", "own_trigger"));
extern const char own_trigger[];

static char folder[PATH_MAX];

static int find_in(const char *path, uint64_t *offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : trigger_find(fd, offset);

	if (fd >= 0)
		close(fd);
	return error;
}

static char *in_folder(char path[PATH_MAX + 16], const char *name)
{
	snprintf(path, PATH_MAX + 16, "%s/%s", folder, name);
	return path;
}

static unsigned char *read_self(size_t *bytes)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	unsigned char *data = malloc((size_t)status.st_size);
	*bytes = (size_t)status.st_size;
	assert_int_equal(read(fd, data, *bytes), status.st_size);
	close(fd);
	return data;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);

	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
}

static void the_note_leads_to_the_instruction(void **state)
{
	uint64_t offset = 0;
	Dl_info info;
	size_t bytes;
	unsigned char *data = read_self(&bytes);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(data + header->e_phoff);
	bool found = false;

	assert_int_equal(find_in("/proc/self/exe", &offset), 0);
	/* The program is linked as PIE: its addresses begin at 0 where it is mapped. */
	assert_true(dladdr(own_trigger, &info));
	uint64_t address = (uintptr_t)own_trigger - (uintptr_t)info.dli_fbase;
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && address - segments[i].p_vaddr < segments[i].p_filesz) {
			assert_true(offset == address - segments[i].p_vaddr + segments[i].p_offset);
			assert_true(segments[i].p_flags & PF_X);
			found = true;
		}
	assert_true(found);
	assert_memory_equal(data + offset, own_trigger, 1);
	free(data);
}

/* `change` gets the note's bytes, from "stapsdt" on: name 8 bytes, address 8, base 8, semaphore 8, provider
 * 8. */
static int with_note(void (*change)(unsigned char *note))
{
	char path[PATH_MAX + 16];
	size_t bytes;
	unsigned char *data = read_self(&bytes), *at = data, *end = data + bytes;
	uint64_t offset;

	while ((at = memmem(at, (size_t)(end - at), "stapsdt", 8))) {
		if (end - at > 40 && memcmp(at + 32, "heaptap", 8) == 0)
			change(at);
		at += 8;
	}
	write_file(in_folder(path, "lies"), data, bytes);
	free(data);
	return find_in(path, &offset);
}

static void leave(unsigned char *note)
{
}

static void another_owner(unsigned char *note)
{
	note[0] = 'S';
}

static void another_provider(unsigned char *note)
{
	note[32] = 'H';
}

static void another_type(unsigned char *note)
{
	note[-4] = 4;
}

static void too_short(unsigned char *note)
{
	const uint32_t descriptor_bytes = 24;

	memcpy(note - 8, &descriptor_bytes, 4);
}

static void beyond_the_file(unsigned char *note)
{
	const uint32_t descriptor_bytes = UINT32_MAX - 7;

	memcpy(note - 8, &descriptor_bytes, 4);
}

static void an_address_of_no_segment(unsigned char *note)
{
	memset(note + 8, 0x7f, 8);
}

static void notes_that_lie(void **state)
{
	assert_int_equal(with_note(leave), 0);
	assert_int_equal(with_note(another_owner), -ENOENT);
	assert_int_equal(with_note(another_provider), -ENOENT);
	assert_int_equal(with_note(another_type), -ENOENT);
	assert_int_equal(with_note(too_short), -ENOENT);
	assert_int_equal(with_note(beyond_the_file), -ENOENT);
	assert_int_equal(with_note(an_address_of_no_segment), -ENOENT);
}

static void files_without_a_trigger(void **state)
{
	char path[PATH_MAX + 16];
	uint64_t offset;
	size_t bytes;
	unsigned char *data = read_self(&bytes);

	assert_int_equal(find_in("/nonexistent", &offset), -ENOENT);
	write_file(in_folder(path, "text"), "this is no ELF file", 19);
	assert_true(find_in(path, &offset) < 0);
	for (size_t cut = 0; cut < 4096; cut += 16) {
		write_file(in_folder(path, "cut"), data, cut);
		assert_true(find_in(path, &offset) < 0);
	}
	free(data);
}

/* Is the page at `offset` of the file in the page cache? */
static bool is_resident(int fd, uint64_t offset)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core = 0;
	/* Mapped and not touched: asking does not bring it in. */
	void *page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, fd, (off_t)(offset & ~(page_bytes - 1)));

	assert_true(page != MAP_FAILED);
	assert_int_equal(mincore(page, page_bytes, &in_core), 0);
	munmap(page, page_bytes);
	return in_core & 1;
}

/* Asks the kernel to drop what it has of the file; others that map it, or read ahead, may be in its way. */
static bool drops(int fd, uint64_t offset)
{
	for (int i = 0; i < 50; i++) {
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
		if (!is_resident(fd, offset))
			return true;
		usleep(10000);
	}
	return false;
}

static int copy_self(char path[PATH_MAX + 16], uint64_t *offset)
{
	size_t bytes;
	unsigned char *data = read_self(&bytes);

	write_file(in_folder(path, "library.so"), data, bytes);
	free(data);
	assert_int_equal(find_in(path, offset), 0);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsync(fd), 0); /* what is dirty cannot be dropped */
	return fd;
}

static void the_page_is_held(void **state)
{
	char path[PATH_MAX + 16];
	uint64_t offset;
	struct trigger_page page;
	int fd = copy_self(path, &offset);

	if (!drops(fd, offset)) {
		print_message("SKIPPED: this file system does not drop pages\n");
		close(fd);
		skip();
	}
	assert_int_equal(trigger_hold(fd, offset, &page), 0);
	assert_true(is_resident(fd, offset));
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_true(is_resident(fd, offset));
	trigger_release(&page);
	assert_true(drops(fd, offset));
	trigger_release(&page); /* nothing is held: no harm */
	assert_int_equal(trigger_hold(-1, offset, &page), -EBADF);
	trigger_release(&page);
	close(fd);
}

/* Nobody else maps this copy, and a uprobe alone does not keep its page. */
static void a_probe_holds_its_page(void **state)
{
	char path[PATH_MAX + 16];
	uint64_t offset;
	struct probe probe;
	int fd = copy_self(path, &offset);

	if (!drops(fd, offset) || probe_open(&probe, BACKEND_UPROBE, path, 4096, 1 << 20) != 0) {
		print_message("SKIPPED: no uprobe for us, or a file system that does not drop pages\n");
		close(fd);
		skip();
	}
	for (int i = 0; i < 10; i++) {
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
		assert_true(is_resident(fd, offset));
	}
	probe_close(&probe);
	assert_true(drops(fd, offset));
	close(fd);
}

/* Beside the program: what is in /tmp may be in memory alone, and then is never dropped. */
static int make_folder(void **state)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return -1;
	self[length] = '\0';
	if (snprintf(folder, sizeof(folder), "%s/trigger-XXXXXX", dirname(self)) >= (int)sizeof(folder))
		return -1;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"lies", "text", "cut", "library.so"};
	char path[PATH_MAX + 16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_folder(path, names[i]));
	return rmdir(folder);
}

/* ---- rounds over threads */

enum { THREADS_MAX = 64 };

struct seen {
	pid_t tids[THREADS_MAX];
	size_t count;
	/* what to create, when asked for the first time */
	size_t more;
	int answer; /* to everybody but the main thread */
};

static pthread_t threads[THREADS_MAX];
static size_t thread_count;
static pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;

static size_t rounds;

/* Each round opens the list of threads once. */
DIR *opendir(const char *name) /* NOLINT */
{
	static DIR *(*real)(const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "opendir");
	rounds++;
	return real(name);
}

static void *wait_for_end(void *argument)
{
	pthread_barrier_wait(&begun);
	pthread_mutex_lock(&end);
	pthread_mutex_unlock(&end);
	return NULL;
}

/* Returns when it is in the kernel's list. */
static void create_thread(void)
{
	assert_int_equal(pthread_create(&threads[thread_count++], NULL, wait_for_end, NULL), 0);
	pthread_barrier_wait(&begun);
}

static int begin(void **state)
{
	thread_count = 0;
	pthread_barrier_init(&begun, NULL, 2);
	return pthread_mutex_lock(&end);
}

static int join_all(void **state)
{
	pthread_mutex_unlock(&end);
	while (thread_count > 0)
		pthread_join(threads[--thread_count], NULL);
	return pthread_barrier_destroy(&begun);
}

static int note(void *context, pid_t tid)
{
	struct seen *seen = context;

	assert_true(seen->count < THREADS_MAX);
	seen->tids[seen->count++] = tid;
	if (seen->more > 0) {
		seen->more--;
		create_thread();
	}
	return tid == getpid() ? 0 : seen->answer;
}

static ssize_t run(struct seen *seen, bool one_is_quiet)
{
	const struct probe_rounds wish = {
	    .pid = getpid(),
	    .rounds_max = 8,
	    .one_is_quiet = one_is_quiet,
	    .thread = note,
	    .context = seen,
	};

	rounds = 0;
	return probe_rounds_run(&wish);
}

static size_t times_asked(const struct seen *seen, pid_t tid)
{
	size_t times = 0;

	for (size_t i = 0; i < seen->count; i++)
		times += seen->tids[i] == tid;
	return times;
}

static void a_single_thread_may_be_enough(void **state)
{
	struct seen once = {0}, twice = {0};

	assert_int_equal(run(&once, true), 1);
	assert_int_equal(rounds, 1);
	assert_int_equal(run(&twice, false), 1);
	assert_int_equal(rounds, 2);
	assert_int_equal(times_asked(&twice, getpid()), 1);
}

/* Each new one is asked once, and makes another until there are no more: rounds go on until then. */
static void threads_that_come_meanwhile_are_found(void **state)
{
	struct seen seen = {.more = 20};

	assert_int_equal(run(&seen, true), 1 + 20);
	assert_int_equal(seen.count, 1 + 20);
	for (size_t i = 0; i < seen.count; i++)
		assert_int_equal(times_asked(&seen, seen.tids[i]), 1);
}

static void answers_decide(void **state)
{
	struct seen ended = {.answer = -ESRCH}, refused = {.answer = -EACCES};

	create_thread();
	/* One that has ended may have created others, but it is not asked again: it may be listed for long.
	 */
	assert_int_equal(run(&ended, false), 1);
	assert_int_equal(ended.count, 2);
	assert_int_equal(rounds, 2);
	assert_int_equal(run(&refused, false), -EACCES);
	assert_int_equal(rounds, 1);
}

static void a_process_that_is_not_there(void **state)
{
	struct seen seen = {0};
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	const struct probe_rounds wish = {.pid = child, .rounds_max = 8, .thread = note, .context = &seen};
	assert_int_equal(probe_rounds_run(&wish), -ESRCH);
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_note_leads_to_the_instruction),
	    cmocka_unit_test(notes_that_lie),
	    cmocka_unit_test(files_without_a_trigger),
	    cmocka_unit_test(the_page_is_held),
	    cmocka_unit_test(a_probe_holds_its_page),
	    cmocka_unit_test_setup_teardown(a_single_thread_may_be_enough, begin, join_all),
	    cmocka_unit_test_setup_teardown(threads_that_come_meanwhile_are_found, begin, join_all),
	    cmocka_unit_test_setup_teardown(answers_decide, begin, join_all),
	    cmocka_unit_test(a_process_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
