/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_peak spike|saw|threads BLOCK_BYTES ROUNDS: a heap whose peak is known to the byte. Writes to
 * stdout
 *
 *     peak BYTES FROM TO BEGIN END
 *
 * in seconds of the Unix clock: the peak stood from some moment after FROM to some moment after TO, in a run
 * from BEGIN to END.
 *
 *   spike    a base, then a spike of a few milliseconds, then churn that uses the same slots again and again
 *   saw      slow saw-tooth, each tooth a little higher than the last but one lower one after the highest
 *   threads  eight threads, each with a tooth of its own; they meet at their tops
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

enum { THREADS = 8, BLOCKS_MAX = 200000 };

static size_t block_bytes;
static size_t rounds;
static size_t live, peak;
static double from, to, looked; /* looked: before the allocation that is being counted */

static NAMED void *take_base(void)
{
	void *block = malloc(block_bytes);

	STAY(block);
	return block;
}

static NAMED void *take_spike(void)
{
	void *block = malloc(block_bytes);

	STAY(block);
	return block;
}

static NAMED void *take_churn(void)
{
	void *block = malloc(block_bytes);

	STAY(block);
	return block;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void grown(void)
{
	live += block_bytes;
	if (live > peak) {
		peak = live;
		from = looked;
		to = 0;
	}
	looked = now();
}

static void shrinks(void)
{
	if (live == peak && to == 0)
		to = now();
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void *blocks[BLOCKS_MAX];

static void hold(size_t first, size_t end, void *(*take)(void))
{
	looked = now();
	for (size_t i = first; i < end; i++) {
		blocks[i] = take();
		grown();
	}
}

static void let_go(size_t first, size_t end)
{
	shrinks();
	for (size_t i = first; i < end; i++) {
		free(blocks[i]);
		live -= block_bytes;
	}
}

static void churn(size_t count)
{
	looked = now();
	for (size_t i = 0; i < count; i++) {
		void *block = take_churn();

		grown();
		shrinks();
		free(block);
		live -= block_bytes;
	}
}

static void spike(void)
{
	hold(0, rounds, take_base);
	pause_ms(100);
	hold(rounds, 4 * rounds, take_spike);
	let_go(rounds, 4 * rounds);
	pause_ms(100);
	churn(20 * rounds);
	let_go(rounds / 2, rounds); /* half of the base goes, long after the peak that it was part of */
	churn(20 * rounds);
	hold(rounds / 2, rounds, take_churn);
}

static void saw(void)
{
	static const unsigned char tops[] = {3, 5, 4, 8, 6, 10, 9, 7, 9, 2};

	for (size_t i = 0; i < sizeof(tops); i++) {
		hold(0, tops[i] * rounds / 10, take_spike);
		pause_ms(20);
		let_go(tops[i] * rounds / 20, tops[i] * rounds / 10);
		churn(rounds / 10);
		let_go(0, tops[i] * rounds / 20);
		pause_ms(10);
	}
}

static pthread_barrier_t barrier;

static double last_block[THREADS]; /* the time before it */

static void *tooth(void *argument)
{
	/* known: THREADS * rounds * 8 bytes are part of the peak */
	void **mine = calloc(rounds, sizeof(*mine));

	for (size_t i = 0; i < rounds; i++) {
		*(double *)argument = now();
		mine[i] = take_spike();
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* the main thread looks at the clock in between */
	for (size_t i = 0; i < rounds; i++)
		free(mine[i]);
	for (size_t i = 0; i < 4 * rounds; i++)
		free(take_churn());
	free(mine);
	return NULL;
}

static void threads(void)
{
	pthread_t ids[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&ids[i], NULL, tooth, &last_block[i]) != 0)
			abort();
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < THREADS; i++)
		from = last_block[i] > from ? last_block[i] : from;
	to = now();
	peak = THREADS * rounds * (block_bytes + sizeof(void *));
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	block_bytes = strtoul(argv[2], NULL, 10);
	rounds = strtoul(argv[3], NULL, 10);
	if (rounds * 4 > BLOCKS_MAX)
		return 2;
	double begin = now();
	if (strcmp(argv[1], "spike") == 0)
		spike();
	else if (strcmp(argv[1], "saw") == 0)
		saw();
	else
		threads();
	char line[160];
	int length =
	    snprintf(line, sizeof(line), "peak %zu %.3f %.3f %.3f %.3f\n", peak, from, to, begin, now());
	return fwrite(line, 1, (size_t)length, stdout) == (size_t)length ? 0 : 1;
}
