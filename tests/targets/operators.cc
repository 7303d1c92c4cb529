// SPDX-License-Identifier: Apache-2.0
/* build: -fno-builtin -Wno-all -fsized-deallocation */
/*
 * Every replaceable operator new and delete, COUNT times each through a function of its own; half of the
 * blocks stay. Writes to FILE what a profile should show: function, alloc_objects, alloc_bytes,
 * inuse_objects, inuse_bytes.
 *
 *   operators FILE COUNT            all forms
 *   operators FILE COUNT throw      that std::bad_alloc comes through, that a new_handler is asked, and
 *                                   nothing is counted
 *   operators FILE SECONDS time     prints ns per pair of new and delete
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#define NAMED __attribute__((noinline, noclone))
static void *volatile kept;
struct row {
	const char *name;
	long objects, bytes, live, live_bytes;
};
static row rows[8];
enum { SIZE = 1000 };
static const std::align_val_t wide{256};

template <typename T> static inline T *stay(T *pointer)
{
	__asm__ volatile("" : "+r"(pointer) : : "memory");
	return pointer;
}

NAMED void *take_plain(size_t size)
{
	return stay(::operator new(size));
}
NAMED void *take_array(size_t size)
{
	return stay(::operator new[](size));
}
NAMED void *take_nothrow(size_t size)
{
	return stay(::operator new(size, std::nothrow));
}
NAMED void *take_array_nothrow(size_t size)
{
	return stay(::operator new[](size, std::nothrow));
}
NAMED void *take_aligned(size_t size)
{
	return stay(::operator new(size, wide));
}
NAMED void *take_array_aligned(size_t size)
{
	return stay(::operator new[](size, wide));
}
NAMED void *take_aligned_nothrow(size_t size)
{
	return stay(::operator new(size, wide, std::nothrow));
}
NAMED void *take_array_aligned_nothrow(size_t size)
{
	return stay(::operator new[](size, wide, std::nothrow));
}

static void drop(int form, long turn, void *block, size_t size)
{
	memset(block, 0x5a, size);
	if (form >= 4 && (uintptr_t)block % 256)
		exit(3);
	switch (form * 3 + turn % 3) {
	case 0:
		return ::operator delete(block);
	case 1:
		return ::operator delete(block, size);
	case 2:
		return ::operator delete(block, std::nothrow);
	case 3:
		return ::operator delete[](block);
	case 4:
		return ::operator delete[](block, size);
	case 5:
		return ::operator delete[](block, std::nothrow);
	case 6:
	case 7:
		return ::operator delete(block, std::nothrow);
	case 8:
		return ::operator delete(block);
	case 9:
	case 10:
		return ::operator delete[](block, std::nothrow);
	case 11:
		return ::operator delete[](block);
	case 12:
		return ::operator delete(block, wide);
	case 13:
		return ::operator delete(block, size, wide);
	case 14:
		return ::operator delete(block, wide, std::nothrow);
	case 15:
		return ::operator delete[](block, wide);
	case 16:
		return ::operator delete[](block, size, wide);
	case 17:
		return ::operator delete[](block, wide, std::nothrow);
	case 18:
	case 19:
		return ::operator delete(block, wide, std::nothrow);
	case 20:
		return ::operator delete(block, wide);
	case 21:
	case 22:
		return ::operator delete[](block, wide, std::nothrow);
	default:
		return ::operator delete[](block, wide);
	}
}

static void *(*const takers[8])(size_t) = {take_plain, take_array, take_nothrow, take_array_nothrow,
    take_aligned, take_array_aligned, take_aligned_nothrow, take_array_aligned_nothrow};
static const char *const names[8] = {"take_plain", "take_array", "take_nothrow", "take_array_nothrow",
    "take_aligned", "take_array_aligned", "take_aligned_nothrow", "take_array_aligned_nothrow"};

static void all_forms(long count)
{
	for (long i = 0; i < count; i++)
		for (int form = 0; form < 8; form++) {
			// whole multiples of the alignment: libstdc++ asks aligned_alloc for no less
			size_t size = (form < 4 ? SIZE + form : 1024) + (size_t)i % 12 * 256;
			void *block = takers[form](size);
			rows[form].objects++;
			rows[form].bytes += (long)size;
			if (i % 2 == 0) {
				kept = block;
				rows[form].live++;
				rows[form].live_bytes += (long)size;
			} else {
				drop(form, i / 2, block, size);
			}
		}
}

static volatile size_t huge = (size_t)1 << 60;
static int asked;
static void handler()
{
	if (++asked % 3 == 0)
		std::set_new_handler(nullptr);
}

template <typename F> static int caught(F call)
{
	try {
		kept = call();
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

static int throws(long count)
{
	for (long i = 0; i < count; i++) {
		int good = 0;
		for (int form : {0, 1, 4, 5}) {
			asked = 0;
			std::set_new_handler(handler);
			good += caught([form] { return takers[form](huge); }) && asked == 3;
		}
		std::set_new_handler(nullptr);
		for (int form : {2, 3, 6, 7})
			good += takers[form](huge) == nullptr;
		if (good != 8) {
			printf("round %ld: %d of 8 are right\n", i, good);
			return 1;
		}
		all_forms(1); // sampling goes on as before
	}
	printf("every throw came through\n");
	return 0;
}

static void time_pairs(double seconds)
{
	double best = 1e9;
	auto begin = std::chrono::steady_clock::now();
	std::chrono::duration<double> taken{};
	do {
		enum { PAIRS = 20000, BATCH = 8 };
		auto start = std::chrono::steady_clock::now();
		void *blocks[BATCH];
		for (int i = 0; i < PAIRS / BATCH; i++) {
			for (int n = 0; n < BATCH; n++)
				blocks[n] = ::operator new(16 + (size_t)n * 24);
			for (int n = 0; n < BATCH; n++)
				::operator delete(stay(blocks[n]));
		}
		std::chrono::duration<double, std::nano> round = std::chrono::steady_clock::now() - start;
		best = round.count() / PAIRS < best ? round.count() / PAIRS : best;
		taken = std::chrono::steady_clock::now() - begin;
	} while (taken.count() < seconds);
	printf("%.2f\n", best);
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		return 2;
	long count = atol(argv[2]);
	int result = 0;
	for (int form = 0; form < 8; form++)
		rows[form].name = names[form];
	if (argc > 3 && strcmp(argv[3], "time") == 0)
		return time_pairs(count), 0;
	if (argc > 3)
		result = throws(count);
	else
		all_forms(count);
	FILE *out = fopen(argv[1], "w");
	for (int form = 0; out && form < 8; form++)
		fprintf(out, "%s\t%ld\t%ld\t%ld\t%ld\n", rows[form].name, rows[form].objects,
		    rows[form].bytes, rows[form].live, rows[form].live_bytes);
	return out && fclose(out) == 0 ? result : 1;
}
