/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * Maps, remaps and unmaps in every way, through named functions, and writes to FILE what a profile should
 * show of it, tab-separated: function, alloc_objects, alloc_bytes, inuse_objects, inuse_bytes.
 *
 *   mappings FILE shapes                each way once, all of its bytes known
 *   mappings FILE many COUNT THREADS    COUNT mappings a thread of random lengths; unmapped, trimmed or kept
 *   mappings FILE shared THREADS        threads that unmap the pages of the same mappings, in no order
 *   mappings FILE time LIVE             prints ns per mmap and munmap of a page, with LIVE mappings beside it
 *   mappings FILE fork                  the child unmaps what it has inherited; FILE is the child's truth
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")
#define PAGE          4096ul

enum { THREADS = 16 };

struct truth {
	const char *name;
	_Atomic long objects, bytes, live, live_bytes;
};
static struct truth take_truth = {"take"}, over_truth = {"take_over"}, grow_truth = {"take_grow"},
                    commit_truth = {"commit"};

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "mappings: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void born(struct truth *truth, size_t pages)
{
	truth->objects++, truth->live++;
	truth->bytes += (long)(pages * PAGE), truth->live_bytes += (long)(pages * PAGE);
}

static void gone(struct truth *truth, size_t pages, int objects)
{
	truth->live -= objects;
	truth->live_bytes -= (long)(pages * PAGE);
}

static NAMED char *take(size_t pages)
{
	char *start = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(start != MAP_FAILED, "mmap");
	born(&take_truth, pages);
	STAY(start);
	return start;
}

static NAMED char *take_over(char *at, size_t pages)
{
	char *start = mmap64(at, pages * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	check(start == at, "mmap over another");
	born(&over_truth, pages);
	STAY(start);
	return start;
}

static NAMED void commit(char *start, size_t pages, int protection)
{
	errno = 4321;
	check(mprotect(start, pages * PAGE, protection) == 0 && errno == 4321, "mprotect");
	born(&commit_truth, pages);
	STAY(start);
}

/* Memory without access is not in use, as V8 and the JVM reserve it. */
static void reserve(int fd)
{
	char *a = mmap(NULL, 1024 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(a != MAP_FAILED, "mmap without access");
	commit(a, 64, PROT_READ | PROT_WRITE);
	commit(a + 128 * PAGE, 64, PROT_READ | PROT_WRITE);
	commit(a, 64, PROT_READ); /* again: counts once */
	gone(&commit_truth, 64, 1);
	check(mprotect(a + 60 * PAGE, 8 * PAGE, PROT_NONE) == 0, "mprotect"); /* half of that had access */
	gone(&commit_truth, 4, 0);
	take_over(a + 256 * PAGE, 32); /* as the JVM does it */
	char *none =
	    mmap(a + 128 * PAGE, 32 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	check(none == a + 128 * PAGE, "mmap without access over another");
	gone(&commit_truth, 32, 0);
	commit(none, 16, PROT_READ | PROT_WRITE);
	check(munmap(a + 512 * PAGE, 512 * PAGE) == 0, "munmap of a part without access");
	a = take(8); /* no reservation: its protection says nothing */
	check(mprotect(a, 8 * PAGE, PROT_NONE) == 0 && mprotect(a, 8 * PAGE, PROT_READ) == 0, "mprotect");
	a = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_SHARED, fd, 0);
	check(a != MAP_FAILED && mprotect(a, 8 * PAGE, PROT_READ) == 0, "mprotect of a file");
	errno = 0;
	check(mprotect(none + 1, PAGE, PROT_READ) == -1 && errno == EINVAL, "mprotect of no page");
}

static NAMED char *take_grow(char *old, size_t pages, size_t to_pages, int flags, char *to)
{
	char *start = mremap(old, pages * PAGE, to_pages * PAGE, flags, to);

	check(start != MAP_FAILED, "mremap");
	STAY(start);
	return start;
}

static void drop(char *start, size_t pages)
{
	errno = 4321;
	check(munmap(start, pages * PAGE) == 0 && errno == 4321, "munmap");
}

static void shapes(void)
{
	char *a = take(10);

	drop(a, 10);
	gone(&take_truth, 10, 1);
	a = take(10); /* head, tail, middle: 5 pages in 2 pieces stay */
	drop(a, 1);
	drop(a + 8 * PAGE, 2);
	drop(a + 3 * PAGE, 2);
	drop(a + 3 * PAGE, 2); /* again: nothing */
	gone(&take_truth, 5, 0);
	a = take(40); /* a comb of 20 teeth, then none */
	for (int i = 0; i < 40; i += 2)
		drop(a + i * PAGE, 1);
	drop(a, 40);
	gone(&take_truth, 40, 1);
	/* three neighbours made of one address range, unmapped by one call that takes half of the outer two
	 * */
	a = take(64);
	drop(a, 64);
	gone(&take_truth, 64, 1);
	for (int i = 0; i < 3; i++) {
		char *b = mmap(
		    a + i * 16 * PAGE, 16 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		check(b == a + i * 16 * PAGE, "mmap fixed");
	}
	drop(a, 48);
	a = take(64);
	take_over(a + 16 * PAGE, 8); /* lies over the middle of another */
	gone(&take_truth, 8, 0);
	take_over(a + 20 * PAGE, 8); /* over the end of that, and the one below */
	gone(&over_truth, 4, 0);
	gone(&take_truth, 4, 0);
	drop(a + 12 * PAGE, 10); /* spans both: 4 pages of the outer, 4 and 2 of the inner ones */
	gone(&take_truth, 4, 0);
	gone(&over_truth, 6, 1);
	int fd = memfd_create("mappings", 0);
	check(fd >= 0 && ftruncate(fd, 64 * PAGE) == 0, "memfd");
	/* a file over it */
	char *file = mmap(a + 40 * PAGE, 8 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	check(file == a + 40 * PAGE, "mmap of a file");
	gone(&take_truth, 8, 0);
	file = mremap(file, 8 * PAGE, 32 * PAGE, MREMAP_MAYMOVE); /* a file's is not recorded */
	check(file != MAP_FAILED, "mremap of a file");
	drop(file, 32);

	a = take(32);
	check(take_grow(a, 32, 8, 0, NULL) == a, "shrinking in place");
	gone(&take_truth, 24, 0);
	char *room = take(256), *b = take_grow(a, 8, 128, MREMAP_MAYMOVE | MREMAP_FIXED, room + 64 * PAGE);
	gone(&take_truth, 128, 0); /* of `room` */
	gone(&take_truth, 8, 1);   /* it moved */
	born(&grow_truth, 128);
	check(b == room + 64 * PAGE, "mremap to a place");
	drop(room, 256);
	gone(&take_truth, 128, 1);
	gone(&grow_truth, 128, 1);
	a = take(16);
	drop(a + 8 * PAGE, 8);
	gone(&take_truth, 8, 0);
	b = take_grow(a, 8, 16, 0, NULL); /* in place: there is room now */
	check(b == a, "growing in place");
	gone(&take_truth, 8, 1);
	born(&grow_truth, 16);

	reserve(fd);

	/* other callers, to be seen as such */
	a = mmap(NULL, 5000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(a != MAP_FAILED, "mmap");
	check(munmap(a, 1) == 0, "munmap");
	check(munmap(a + PAGE, 904) == 0, "munmap");

	errno = 0;
	check(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL,
	    "mmap of nothing");
	check(mmap(NULL, 1ul << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	        errno == ENOMEM,
	    "a huge mmap");
	errno = 0;
	check(munmap(b + 1, PAGE) == -1 && errno == EINVAL, "munmap of no page");
	check(mremap(b + 1, PAGE, PAGE, 0) == MAP_FAILED && errno == EINVAL, "mremap of no page");
}

static unsigned long next(unsigned long *state)
{
	*state = *state * 6364136223846793005ul + 1442695040888963407ul;
	return *state >> 33;
}

static long count;
static void *many(void *argument)
{
	unsigned long state = (unsigned long)argument;

	for (long i = 0; i < count; i++) {
		size_t pages = 1 + next(&state) % 512, kept = next(&state) % pages,
		       head = next(&state) % (kept + 1);
		char *start = take(pages);

		switch (next(&state) % 4) {
		case 0: /* a piece stays: two unmappings */
			if (kept == 0)
				break;
			if (head)
				drop(start, head);
			drop(start + kept * PAGE, pages - kept);
			gone(&take_truth, pages - kept + head, kept == head);
			break;
		case 1:
			if (i % 8 == 0)
				break; /* stays */
			               /* fallthrough */
		default:
			drop(start, pages);
			gone(&take_truth, pages, 1);
		}
	}
	return NULL;
}

enum { SHARED = 64, SHARED_PAGES = 200, ROUNDS = 10 };
static char *shared[SHARED];
static int threads;
static pthread_barrier_t barrier;

/* Each thread unmaps the pages that are its by number; together all but every 50th of each third mapping. */
static void *unmap_shared(void *argument)
{
	long me = (long)argument;

	for (int round = 0; round < ROUNDS; round++) {
		if (me == 0)
			for (int i = 0; i < SHARED; i++)
				shared[i] = take(SHARED_PAGES);
		pthread_barrier_wait(&barrier);
		for (int page = 0; page < SHARED_PAGES; page++)
			for (int i = 0; i < SHARED; i++)
				if ((page * 7 + i) % threads == me && (i % 3 != 0 || page % 50 != 0)) {
					drop(shared[i] + page * PAGE, 1);
					gone(&take_truth, 1, 0);
				}
		pthread_barrier_wait(&barrier);
		if (me == 0)
			for (int i = 0; i < SHARED; i++)
				take_truth.live -= i % 3 != 0;
	}
	return NULL;
}

static void run(void *(*work)(void *))
{
	pthread_t others[THREADS];

	for (long i = 1; i < threads; i++)
		check(pthread_create(&others[i], NULL, work, (void *)i) == 0, "pthread_create");
	work((void *)0);
	for (int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
}

static int in_child(void)
{
	char *a = take(100), *b = take(100), *c = take(100);

	drop(a + 20 * PAGE, 10);
	gone(&take_truth, 10, 0);
	pid_t child = fork();
	if (child) {
		int status;

		check(waitpid(child, &status, 0) == child && status == 0, "the child");
		return 0;
	}
	take_truth.objects = take_truth.bytes = 0; /* what it has inherited it has not allocated */
	drop(a, 50);
	gone(&take_truth, 40, 0);
	drop(b, 100);
	gone(&take_truth, 100, 1);
	take(7);
	c = take_grow(c, 100, 200, MREMAP_MAYMOVE, NULL);
	gone(&take_truth, 100, 1);
	born(&grow_truth, 200);
	return 1;
}

static void time_pairs(void)
{
	enum { RUNS = 25, PAIRS = 400 };
	double best = 1e18;

	for (long i = 0; i < count; i++)
		take(1 + (size_t)i % 2);
	for (int run = 0; run < RUNS; run++) {
		struct timespec start, end;

		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int i = 0; i < PAIRS; i++)
			munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
		clock_gettime(CLOCK_MONOTONIC, &end);
		double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
		best = ns / PAIRS < best ? ns / PAIRS : best;
	}
	printf("%.0f\n", best);
}

static int tell(const char *path)
{
	const struct truth *all[] = {&take_truth, &over_truth, &grow_truth, &commit_truth};
	FILE *out = fopen(path, "w");

	if (!out)
		return 1;
	for (int i = 0; i < 4; i++)
		if (all[i]->objects || all[i]->live)
			fprintf(out, "%s\t%ld\t%ld\t%ld\t%ld\n", all[i]->name, all[i]->objects, all[i]->bytes,
			    all[i]->live, all[i]->live_bytes);
	return fclose(out) != 0;
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		return 2;
	count = argc > 3 ? atol(argv[3]) : 0;
	threads = argc > 4 ? atoi(argv[4]) : (int)count;
	if (threads < 1 || threads > THREADS)
		threads = 1;
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	if (strcmp(argv[2], "shapes") == 0)
		shapes();
	else if (strcmp(argv[2], "many") == 0)
		run(many);
	else if (strcmp(argv[2], "shared") == 0)
		run(unmap_shared);
	else if (strcmp(argv[2], "time") == 0)
		return time_pairs(), 0;
	else if (!in_child())
		return 0;
	return tell(argv[1]);
}
