/* SPDX-License-Identifier: Apache-2.0 */
/* What resident memory consists of: texts with every kind of mapping, and this process. */
#include "sampler/intake/resident.h"

#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int classify(struct resident *resident, const struct resident_facts *facts, const char *text)
{
	struct resident_reader *reader = malloc(sizeof(*reader));

	resident_begin(reader, facts, resident);
	resident_feed(reader, text, strlen(text));
	int error = resident_end(reader, 0);
	free(reader);
	uint64_t sum = 0;
	for (int i = 0; i < RESIDENT_KINDS; i++)
		sum += resident->bytes[i];
	assert_int_equal(sum, resident->total_bytes);
	return error;
}

/* Of one mapping with 8 KiB, alone. */
static enum resident_kind kind_of(const char *line)
{
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident resident;
	char text[512];

	snprintf(text, sizeof(text), "%s\nRss: 8 kB\n", line);
	assert_int_equal(0, classify(&resident, &facts, text));
	assert_int_equal(8192, resident.total_bytes);
	for (int i = 0; i < RESIDENT_KINDS; i++)
		if (resident.bytes[i])
			return (enum resident_kind)i;
	return RESIDENT_KINDS;
}

static void names_the_kernel_gives(void **unused)
{
	static const struct {
		enum resident_kind kind;
		const char *line;
	} lines[] = {
	    {RESIDENT_HEAP, "10000-20000 rw-p 0 00:00 0   [heap]"},
	    {RESIDENT_HEAP, "10000-20000 rw-p 0 00:00 0   [anon: glibc: malloc arena]"},
	    {RESIDENT_STACKS, "10000-20000 rw-p 0 00:00 0   [stack]"},
	    {RESIDENT_STACKS, "10000-20000 rw-p 0 00:00 0   [stack:42]"},
	    {RESIDENT_STACKS, "10000-20000 rw-p 0 00:00 0   [anon: glibc: pthread stack: 42]"},
	    {RESIDENT_ANONYMOUS, "10000-20000 rw-p 0 00:00 0"},
	    {RESIDENT_ANONYMOUS, "10000-20000 rwxp 0 00:00 0"},
	    {RESIDENT_ANONYMOUS, "10000-20000 rw-p 0 00:00 0   [anon:v8]"},
	    {RESIDENT_ANONYMOUS, "10000-20000 rw-p 0 00:01 9   /dev/zero"},
	    {RESIDENT_SHARED, "10000-20000 rw-s 0 00:01 9   /dev/zero (deleted)"},
	    {RESIDENT_SHARED, "10000-20000 rw-s 0 00:01 9   /memfd:wayland (deleted)"},
	    {RESIDENT_SHARED, "10000-20000 r-xp 0 00:01 9   /memfd:jit (deleted)"},
	    {RESIDENT_SHARED, "10000-20000 rw-s 0 00:01 9   /dev/shm/PostgreSQL.1"},
	    {RESIDENT_SHARED, "10000-20000 rw-s 0 00:01 9   /SYSV00000000 (deleted)"},
	    {RESIDENT_SHARED, "10000-20000 rw-s 0 00:01 9   [anon_shmem:x]"},
	    {RESIDENT_FILES, "10000-20000 r--p 0 08:01 9   /usr/lib/locale/locale-archive"},
	    {RESIDENT_FILES, "10000-20000 rw-s 0 08:01 9   /srv/data.mdb"},
	    {RESIDENT_CODE, "10000-20000 r-xp 0 08:01 9   /usr/bin/redis-check-rdb (deleted)"},
	    {RESIDENT_OURS, "10000-20000 rw-s 0 00:01 9   /memfd:heaptap (deleted)"},
	    {RESIDENT_OURS, "10000-20000 r-xp 0 08:01 9   /opt/libheaptap.so"},
	    {RESIDENT_CODE, "10000-20000 r-xp 0 08:01 9   /opt/libheaptap.so.old"},
	    {RESIDENT_KERNEL, "10000-20000 r-xp 0 00:00 0   [vdso]"},
	    {RESIDENT_KERNEL, "10000-20000 r--p 0 00:00 0   [vvar]"},
	    {RESIDENT_KERNEL, "10000-20000 r-xp 0 00:00 0   [uprobes]"},
	    {RESIDENT_KERNEL, "10000-20000 rw-s 0 00:01 9   anon_inode:[perf_event]"},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (kind_of(lines[i].line) != lines[i].kind)
			fail_msg("%s is %s", lines[i].line, resident_kind_name(kind_of(lines[i].line)));
}

/* All of a file that is executed is code, its .bss too; a data file beside it is not, nor what lies behind
 * that. */
static void a_library_and_a_data_file(void **unused)
{
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident r;

	assert_int_equal(0,
	    classify(&r, &facts,
	        "10000-20000 r--p 0 08:01 9 /lib/a.so\nRss: 4 kB\n"
	        "20000-30000 r-xp 0 08:01 9 /lib/a.so\nRss: 8 kB\n"
	        "30000-40000 rw-p 0 08:01 9 /lib/a.so\nRss: 16 kB\n"
	        "40000-50000 rw-p 0 00:00 0\nRss: 32 kB\n"         /* .bss */
	        "50000-60000 rw-p 0 00:00 0 [anon:x]\nRss: 1 kB\n" /* not that */
	        "60000-70000 rw-p 0 08:01 8 /srv/data\nRss: 2 kB\n"
	        "70000-80000 rw-p 0 00:00 0\nRss: 3 kB\n" /* behind a data file */
	        "80000-90000 r-xp 0 08:01 7 /lib/b.so\nRss: 5 kB\n"
	        "90000-a0000 rw-p 0 00:00 0\nRss: 6 kB\n" /* behind code that is not writable */
	        "b0000-c0000 r-xp 0 08:01 6 /opt/libheaptap.so\nRss: 7 kB\n"
	        "c0000-d0000 rw-p 0 08:01 6 /opt/libheaptap.so\nRss: 9 kB\n"
	        "d0000-e0000 rw-p 0 00:00 0\nRss: 10 kB\n"
	        "e0000-f0000 rw-p 0 08:01 9 /lib/a.so\nRss: 11 kB\n"));
	assert_int_equal((4 + 8 + 16 + 32 + 5) << 10, r.bytes[RESIDENT_CODE]);
	assert_int_equal((1 + 3 + 6) << 10, r.bytes[RESIDENT_ANONYMOUS]);
	assert_int_equal((2 + 11) << 10, r.bytes[RESIDENT_FILES]);
	assert_int_equal((7 + 9 + 10) << 10, r.bytes[RESIDENT_OURS]);
	assert_int_equal(13, r.mappings);
}

/* The kernel merges our .bss with memory of the program that lies behind it. */
static void memory_behind_our_library_is_the_programs(void **unused)
{
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident r;

	assert_int_equal(0,
	    classify(&r, &facts,
	        "b0000-c0000 r-xp 0 08:01 6 /opt/libheaptap.so\nRss: 7 kB\n"
	        "c0000-d0000 rw-p 0 08:01 6 /opt/libheaptap.so\nRss: 9 kB\n"
	        "d0000-3110000 rw-p 0 00:00 0\nRss: 49152 kB\n"));
	assert_int_equal((7 + 9) << 10, r.bytes[RESIDENT_OURS]);
	assert_int_equal(49152 << 10, r.bytes[RESIDENT_ANONYMOUS]);
}

/* Blocks say which mappings are the allocator's, and any address is taken. */
struct block {
	uint64_t address, size_bytes;
	double weight_bytes;
};

static void point(void *context, struct resident_reader *reader)
{
	for (const struct block *block = context; block->address; block++)
		resident_block(reader, block->address, block->size_bytes, block->weight_bytes);
}

static void blocks_and_descriptors(void **unused)
{
	static const char text[] = "100000-200000 rw-p 0 00:00 0\nRss: 4 kB\n"
	                           "200000-300000 rw-p 0 00:00 0 [heap]\nRss: 8 kB\n"
	                           "400000-500000 rw-p 0 00:00 0\nRss: 16 kB\n"
	                           "600000-700000 rw-p 0 00:00 0\nRss: 32 kB\n"
	                           "800000-4000000 rw-p 0 00:00 0\nRss: 64 kB\n"
	                           "5000000-5100000 rw-p 0 00:00 0\nRss: 128 kB\n"
	                           "51f0000-5210000 rw-p 0 00:00 0\nRss: 128 kB\n"
	                           "5800000-5900000 rw-p 0 00:00 0\nRss: 512 kB\n"
	                           "6000000-6100000 rw-p 0 08:01 9 /srv/data\nRss: 256 kB\n";
	static const uint64_t addresses[] = {0x1fffff, 0x250000, 0x100000, 0x500000, 0x4000000, 1, UINT64_MAX,
	    0x6000010, 0x7000000, 0x8000000000000000};
	struct block blocks[11] = {{0}};

	for (int i = 0; i < 10; i++)
		blocks[i] = (struct block){addresses[i], 131071, 1e6};
	/* of two threads in one mapping; far below the end of a large one */
	const uint64_t descriptors[] = {0x610000, 0x6ff000, 0x900000};
	const struct resident_facts facts = {
	    .own_start = 0x5000000,
	    .own_end = 0x5200000,
	    .grown_start = 0x5800000,
	    .grown_end = 0x5900000,
	    .descriptors = descriptors,
	    .descriptor_count = 3,
	    .each_block = point,
	    .context = blocks,
	};
	struct resident r;
	assert_int_equal(0, classify(&r, &facts, text));
	assert_int_equal((4 + 8) << 10, r.bytes[RESIDENT_HEAP]);
	assert_int_equal((16 + 64 + 128) << 10, r.bytes[RESIDENT_ANONYMOUS]);
	assert_int_equal(32 << 10, r.bytes[RESIDENT_STACKS]);
	assert_int_equal(2, r.threads);
	assert_int_equal((128 + 512) << 10, r.bytes[RESIDENT_OURS]);
	assert_int_equal(256 << 10, r.bytes[RESIDENT_FILES]);
}

/* The kernel makes one mapping of the allocator's own and of others beside it: a block that has a mapping
 * of its own says nothing about them, unless a small one is there too. */
static void large_blocks_prove_only_themselves(void **unused)
{
	static const char text[] = "100000-1100000 rw-p 0 00:00 0\nRss: 16384 kB\n"
	                           "2000000-2100000 rw-p 0 00:00 0\nRss: 1024 kB\n";
	struct block blocks[] = {{0x200000, 1 << 20, 1 << 20},
	    {0x500000, 128 << 10, 512 << 10}, /* as many as four of its kind */
	    {0x2000000, 1 << 20, 3 << 20},    /* more than is resident: the rest was not touched */
	    {0}, {0}};
	const struct resident_facts facts = {.each_block = point, .context = blocks};
	struct resident r;

	assert_int_equal(0, classify(&r, &facts, text));
	assert_int_equal((1536 + 1024) << 10, r.bytes[RESIDENT_HEAP]);
	assert_int_equal((16384 - 1536) << 10, r.bytes[RESIDENT_ANONYMOUS]);
	blocks[3] = (struct block){0x10fffff, 100, 512 << 10};
	assert_int_equal(0, classify(&r, &facts, text));
	assert_int_equal(0, r.bytes[RESIDENT_ANONYMOUS]);
}

static void a_broken_text_is_an_error(void **unused)
{
	struct block blocks[] = {{0x100000, 1, 1}, {0}};
	const struct resident_facts facts = {.each_block = point, .context = blocks};
	struct resident r;

	assert_int_equal(-EPROTO, classify(&r, &facts, "100000-200000 rw-p 0 00:00 0\nRss: 4 kB"));
}

static void the_region_is_looked_for(void **unused)
{
	const struct resident_facts facts = {.region_ino = 9};
	struct resident r;

	assert_int_equal(
	    0, classify(&r, &facts, "1000-2000 rw-s 0 00:01 8 /memfd:heaptap (deleted)\nRss: 4 kB\n"));
	assert_false(r.has_region);
	assert_int_equal(0, classify(&r, &facts, "1000-2000 rw-s 0 00:01 9 /srv/heaptap\nRss: 4 kB\n"));
	assert_false(r.has_region);
	assert_int_equal(
	    0, classify(&r, &facts, "1000-2000 rw-s 0 00:01 9 /memfd:heaptap (deleted)\nRss: 4 kB\n"));
	assert_true(r.has_region);
	assert_int_equal(-ESRCH, resident_read(&r, getpid(), &facts, 0));
}

/* ---- the kernel's counters */

static void counters(void **unused)
{
	struct resident r;

	assert_true(resident_parse_status(&r,
	    "Name:\tx\nVmRSS:\t 99 kB\nRssAnon:\t 4 kB\nRssFile:\t 8 kB\nRssShmem:\t 16 kB\nVmSwap:\t 32 "
	    "kB\n"));
	assert_int_equal(28 << 10, r.total_bytes);
	assert_int_equal(4 << 10, r.bytes[RESIDENT_ANONYMOUS]);
	assert_int_equal(8 << 10, r.bytes[RESIDENT_FILES]);
	assert_int_equal(16 << 10, r.bytes[RESIDENT_SHARED]);
	assert_int_equal(32 << 10, r.swap_bytes);
	assert_true(r.counters);
	assert_false(resident_parse_status(&r, ""));
	assert_false(resident_parse_status(&r, "Name:\tx\nState:\tZ\n"));
	assert_false(
	    resident_parse_status(&r, "\nRssAnon: 99999999999999999999 kB\nRssFile: 1\nRssShmem: 1\n"));
}

/* ---- this process */

static void *wait_at(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

enum { THREADS = 3, STACK_BYTES = 1 << 20, FILL_BYTES = 300 << 10 };

static void fill_stack(void)
{
	volatile char deep[FILL_BYTES];

	for (size_t i = 0; i < sizeof(deep); i += 4096)
		deep[i] = 1;
}

static void *fill_and_wait(void *barrier)
{
	fill_stack();
	return wait_at(barrier);
}

/* The stacks of threads are found, with what has been touched of them. */
static void stacks_of_threads(void **unused)
{
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident before, after;
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	pthread_attr_t attributes;

	assert_int_equal(0, resident_read(&before, getpid(), &facts, 0));
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(0, pthread_create(&threads[i], &attributes, fill_and_wait, &barrier));
	pthread_barrier_wait(&barrier);
	assert_int_equal(0, resident_read(&after, getpid(), &facts, 0));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(before.threads + THREADS, after.threads);
	uint64_t more = after.bytes[RESIDENT_STACKS] - before.bytes[RESIDENT_STACKS];
	assert_in_range(more, THREADS * FILL_BYTES, THREADS * STACK_BYTES);
}

/* What is mapped and touched is where it belongs, and the whole is the kernel's own sum. */
static void the_sum_is_the_kernels(void **unused)
{
	enum { BYTES = 32 << 20 };
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident r, before;

	assert_int_equal(0, resident_read(&before, getpid(), &facts, 0));
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, BYTES);
	memset(shared, 1, BYTES / 2);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	/* Until it sleeps it touches pages. */
	FILE *rollup;
	char path[64], line[256], state = 0;
	unsigned long long kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	for (int tries = 0; state != 'S' && tries < 60000; tries++) {
		FILE *stat = fopen(path, "r");

		assert_non_null(stat);
		assert_int_equal(1, fscanf(stat, "%*d (%*[^)]) %c", &state));
		fclose(stat);
		usleep(1000);
	}
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)child);
	assert_int_equal(0, resident_read(&r, child, &facts, 0));
	rollup = fopen(path, "r");
	while (rollup && fgets(line, sizeof(line), rollup))
		(void)sscanf(line, "Rss: %llu kB", &kib);
	if (rollup)
		fclose(rollup);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal('S', state);
	assert_int_equal(kib << 10, r.total_bytes);
	assert_int_equal(0, resident_read(&r, getpid(), &facts, 0));
	assert_in_range(
	    r.bytes[RESIDENT_ANONYMOUS], BYTES, before.bytes[RESIDENT_ANONYMOUS] + BYTES + (1 << 20));
	assert_int_equal(BYTES / 2, r.bytes[RESIDENT_SHARED] - before.bytes[RESIDENT_SHARED]);
	/* No time for so many pages: the kernel's counters, with the same whole. */
	struct resident quick;
	assert_int_equal(0, resident_read(&quick, getpid(), &facts, 1000));
	assert_true(quick.counters);
	assert_true(llabs((long long)quick.total_bytes - (long long)r.total_bytes) < 2 << 20);
	munmap(memory, BYTES);
	munmap(shared, BYTES);
}

static void who_is_not_there(void **unused)
{
	const struct resident_facts facts = {.library = "libheaptap.so"};
	struct resident r;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	siginfo_t info;
	assert_int_equal(0, waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	assert_int_equal(-ESRCH, resident_read(&r, child, &facts, 0)); /* a zombie */
	waitpid(child, NULL, 0);
	assert_int_equal(-ENOENT, resident_read(&r, child, &facts, 0));
}

/* Reads a process that ends so long after its 4,000 mappings were made. */
static int read_one_that_ends(struct resident *resident, unsigned int after_us)
{
	enum { MAPPINGS = 4000 };
	const struct resident_facts facts = {0};
	int ready[2];
	char byte;

	assert_int_equal(0, pipe(ready));
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < MAPPINGS; i++)
			(void)mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		(void)!write(ready[1], "", 1);
		usleep(after_us);
		_exit(0);
	}
	assert_int_equal(1, read(ready[0], &byte, 1));
	int error = resident_read(resident, child, &facts, 0);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return error || resident->mappings >= MAPPINGS ? error : 1;
}

static void a_part_is_no_reading(void **unused)
{
	unsigned int ended = 0;

	for (unsigned int i = 0; i < 100; i++) {
		struct resident r;
		int error = read_one_that_ends(&r, 100 * i);

		assert_true(error <= 0);
		ended += error != 0;
	}
	assert_true(ended > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_the_kernel_gives),
	    cmocka_unit_test(a_library_and_a_data_file),
	    cmocka_unit_test(memory_behind_our_library_is_the_programs),
	    cmocka_unit_test(blocks_and_descriptors),
	    cmocka_unit_test(large_blocks_prove_only_themselves),
	    cmocka_unit_test(a_broken_text_is_an_error),
	    cmocka_unit_test(the_region_is_looked_for),
	    cmocka_unit_test(counters),
	    cmocka_unit_test(stacks_of_threads),
	    cmocka_unit_test(the_sum_is_the_kernels),
	    cmocka_unit_test(a_part_is_no_reading),
	    cmocka_unit_test(who_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
