/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/unwind_cold.h"

#include "sampler/unwind/cfi.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIGHTS_MAX = 1 << 16, FILES_MAX = 256 };

struct sight {
	struct module *module;
	uint64_t vaddr;
};

struct cold {
	size_t count;
	struct sight sights[SIGHTS_MAX];
	uint32_t slots[2 * SIGHTS_MAX]; /* 1 + number of a sight; 0: free */
};

struct cold *cold_new(void)
{
	return calloc(1, sizeof(struct cold));
}

void cold_free(struct cold *cold)
{
	free(cold);
}

void cold_add(struct cold *cold, const struct unwind_frame *frames, size_t count)
{
	for (size_t i = 0; i < count && cold->count < SIGHTS_MAX; i++) {
		const struct unwind_frame *f = &frames[i];
		uint64_t hash =
		    (f->vaddr ^ (uint64_t)(uintptr_t)f->module) * UINT64_C(0x9e3779b97f4a7c15) >> 47;

		if (!f->module || f->module->vdso)
			continue;
		for (; cold->slots[hash]; hash = (hash + 1) % (2 * SIGHTS_MAX)) {
			const struct sight *s = &cold->sights[cold->slots[hash] - 1];

			if (s->vaddr == f->vaddr && s->module == f->module)
				break;
		}
		if (cold->slots[hash])
			continue;
		cold->sights[cold->count++] = (struct sight){f->module, f->vaddr};
		cold->slots[hash] = (uint32_t)cold->count;
	}
}

/* Of this thread: the machine is shared. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct module *open_again(struct modules *store, const struct module *module)
{
	struct module_request request = {.path = module->path,
	    .build_id = module->file.build_id_len ? module->file.build_id : NULL,
	    .build_id_len = module->file.build_id_len};

	return module_get(store, &request);
}

/* Number of the file among those of BEFORE; *N if it is new. */
static size_t find_file(const struct module *const *before, size_t n, const struct module *module)
{
	size_t i = 0;

	while (i < n && before[i] != module)
		i++;
	return i;
}

void cold_measure(const struct cold *cold, struct cold_cost *cost)
{
	struct modules *store = modules_new(0);
	const struct module *before[FILES_MAX];
	struct module *now[FILES_MAX];
	uint64_t files_ns = 0, addresses_ns = 0;

	memset(cost, 0, sizeof(*cost));
	/* A file and its first address, then the others: between them stand the clock's own 200 ns, once a
	 * file. */
	for (size_t i = 0; i < cold->count; i++) {
		const struct sight *s = &cold->sights[i];

		if (cost->files == FILES_MAX || find_file(before, cost->files, s->module) < cost->files)
			continue;
		uint64_t start = cpu_ns();
		before[cost->files] = s->module;
		now[cost->files] = open_again(store, s->module);
		module_rule(now[cost->files++], s->vaddr);
		files_ns += cpu_ns() - start;
	}
	for (size_t k = 0; k < cost->files; k++) {
		uint64_t start = cpu_ns();

		for (size_t i = 0; i < cold->count; i++)
			if (cold->sights[i].module == before[k])
				module_rule(now[k], cold->sights[i].vaddr);
		addresses_ns += cpu_ns() - start;
	}
	cost->addresses = cold->count - cost->files;
	cost->file_us = cost->files ? (double)files_ns / 1e3 / (double)cost->files : 0;
	cost->address_us = cost->addresses ? (double)addresses_ns / 1e3 / (double)cost->addresses : 0;
	for (size_t k = 0; k < cost->files; k++)
		module_unref(now[k]);
	modules_free(store);
}
