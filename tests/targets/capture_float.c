/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -lm */
/*
 * Programs that look at their floating-point environment, and allocate with all functions of the family:
 *
 *   capture_float traps      unmasks all exceptions, so that any inexact result is SIGFPE; 77: no such traps
 *   capture_float rounding   in each direction
 *   capture_float flags      with no flag raised
 *
 * Each ends with status 0 if its environment is as before, and says `truth OBJECTS BYTES` of take().
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 2000, KEPT = 64 };

static void *kept[KEPT];
static long objects, bytes;

__attribute__((noinline)) static void *take(void *old, int how, size_t size)
{
	void *block = NULL;

	objects++;
	bytes += (long)size;
	switch (how % 5) {
	case 0:
		return realloc(old, size);
	case 1:
		free(old);
		return malloc(size);
	case 2:
		free(old);
		return calloc(1, size);
	case 3:
		free(old);
		return memalign(64, size);
	default:
		free(old);
		return posix_memalign(&block, 32, size) == 0 ? block : NULL;
	}
}

static void allocate(void)
{
	for (int i = 0; i < ROUNDS; i++)
		kept[i % KEPT] = take(kept[i % KEPT], i, (size_t)(16 + i * 7919 % 9000));
}

static int traps(void)
{
	feclearexcept(FE_ALL_EXCEPT);
	if (feenableexcept(FE_ALL_EXCEPT) == -1)
		return 77;
	allocate();
	return fegetexcept() == FE_ALL_EXCEPT ? 0 : 1;
}

static int rounding(void)
{
	const int directions[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
	int changed = 0;

	for (int i = 0; i < 3; i++) {
		fesetround(directions[i]);
		allocate();
		changed |= fegetround() != directions[i];
	}
	fesetround(FE_TONEAREST);
	return changed;
}

static int flags(void)
{
	feclearexcept(FE_ALL_EXCEPT);
	allocate();
	return fetestexcept(FE_ALL_EXCEPT) ? 1 : 0;
}

int main(int argc, char *argv[])
{
	const char *mode = argc > 1 ? argv[1] : "";
	char text[64];
	int status = !strcmp(mode, "traps") ? traps()
	    : !strcmp(mode, "rounding")     ? rounding()
	    : !strcmp(mode, "flags")        ? flags()
	                                    : 2;
	int length = snprintf(text, sizeof(text), "truth %ld %ld\n", objects, bytes);

	if (write(1, text, (size_t)length) != length)
		return 3;
	return status;
}
