/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(RING_CLOCK == CLOCK_MONOTONIC, "slots and records share a clock");

enum {
	RING_BYTES_LEAST = 128 << 10, /* room for one of the largest samples, or three of the usual ones */
	ALL_BYTES_MAX = 512 << 20,
	DUMP_BYTES_MAX = 64000,
};

struct ring {
	int cpu, fd;
	struct perf_event_mmap_page *page;
	uint64_t head, tail; /* `head`: the ring's head when the drain began */
	uint64_t next_time;  /* of the record at tail */
	size_t next_bytes;   /* of the record at tail; 0: none */
};

struct rings {
	size_t count, data_bytes;
	size_t page_bytes; /* the kernel's: perf_event_mmap_page, in front of the data */
	struct ring *ring;
	unsigned char wrapped[65536] __attribute__((aligned(8))); /* a copy of a record that wraps around */
};

uint32_t ring_dump_bytes(uint32_t stack_bytes)
{
	return (stack_bytes > DUMP_BYTES_MAX ? DUMP_BYTES_MAX : stack_bytes) & ~7u;
}

void ring_attr_init(struct perf_event_attr *attr, uint32_t dump_bytes)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_type = RECORD_SAMPLE_TYPE;
	attr->sample_stack_user = dump_bytes;
	attr->sample_id_all = 1;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->use_clockid = 1;
	attr->clockid = RING_CLOCK;
	attr->watermark = 1;
}

static int open_one(const struct rings *rings, struct ring *ring, int cpu)
{
	struct perf_event_attr attr;

	ring_attr_init(&attr, 0);
	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.wakeup_watermark = (uint32_t)(rings->data_bytes / 8);
	ring->cpu = cpu;
	ring->fd = (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return -errno;
	ring->page = mmap(
	    NULL, rings->page_bytes + rings->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->page == MAP_FAILED) {
		int error = -errno;

		close(ring->fd);
		ring->fd = -1;
		return error;
	}
	return 0;
}

static void close_one(const struct rings *rings, struct ring *ring)
{
	if (ring->fd < 0)
		return;
	munmap(ring->page, rings->page_bytes + rings->data_bytes);
	close(ring->fd);
	ring->fd = -1;
}

/* An offline CPU gives ENODEV and is left out. */
static int open_all(struct rings *rings, int cpus)
{
	rings->count = 0;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int error = open_one(rings, &rings->ring[rings->count], cpu);

		if (error == -ENODEV)
			continue;
		if (error) {
			for (size_t i = 0; i < rings->count; i++)
				close_one(rings, &rings->ring[i]);
			return error;
		}
		rings->count++;
	}
	return rings->count ? 0 : -ENODEV;
}

size_t rings_share(size_t want_bytes, uint64_t cpus, uint64_t memory_bytes)
{
	uint64_t all = memory_bytes / 32 < ALL_BYTES_MAX ? memory_bytes / 32 : ALL_BYTES_MAX;

	while (want_bytes > RING_BYTES_LEAST && want_bytes > all / (cpus ? cpus : 1))
		want_bytes /= 2;
	return want_bytes;
}

struct rings *rings_open(size_t want_bytes, int *error)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * page_bytes;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct rings *rings = calloc(1, sizeof(*rings));

	if (rings && cpus > 0)
		rings->ring = calloc((size_t)cpus, sizeof(*rings->ring));
	if (!rings || !rings->ring) {
		free(rings);
		*error = -ENOMEM;
		return NULL;
	}
	/* Beyond perf_event_mlock_kb and RLIMIT_MEMLOCK the mmap fails with EPERM. Then the size is halved
	 * until it fits. */
	*error = -EPERM;
	rings->page_bytes = page_bytes;
	rings->data_bytes = rings_share(want_bytes, (uint64_t)cpus, memory_bytes);
	for (; rings->data_bytes >= RING_BYTES_LEAST; rings->data_bytes /= 2) {
		*error = open_all(rings, (int)cpus);
		if (*error == 0)
			return rings;
		if (*error != -EPERM && *error != -ENOMEM)
			break;
	}
	free(rings->ring);
	free(rings);
	return NULL;
}

void rings_close(struct rings *rings)
{
	if (!rings)
		return;
	for (size_t i = 0; i < rings->count; i++)
		close_one(rings, &rings->ring[i]);
	free(rings->ring);
	free(rings);
}

size_t rings_count(const struct rings *rings)
{
	return rings->count;
}

size_t rings_room(const struct rings *rings, uint32_t dump_bytes)
{
	enum { REST_BYTES = 256 }; /* of a sample, besides its dump */

	return rings->data_bytes / (dump_bytes + REST_BYTES);
}

int rings_cpu(const struct rings *rings, size_t i)
{
	return rings->ring[i].cpu;
}

int rings_fd(const struct rings *rings, size_t i)
{
	return rings->ring[i].fd;
}

static const unsigned char *data_at(const struct rings *rings, const struct ring *ring, uint64_t position)
{
	return (const unsigned char *)ring->page + rings->page_bytes + position % rings->data_bytes;
}

/* Looks at the record at the tail. Positions are 8-byte aligned, so the header itself never wraps. */
static void peek(const struct rings *rings, struct ring *ring)
{
	struct perf_event_header header;

	ring->next_bytes = 0;
	if (ring->head - ring->tail < sizeof(header))
		return;
	memcpy(&header, data_at(rings, ring, ring->tail), sizeof(header));
	if (header.size < sizeof(header) || header.size > ring->head - ring->tail)
		return;
	ring->next_bytes = header.size;
	/* The time may be beyond the wrap. An aligned value of 8 bytes does not wrap itself. */
	size_t at = record_time_at(&header);
	ring->next_time = 0;
	if (at)
		memcpy(&ring->next_time, data_at(rings, ring, ring->tail + at), sizeof(ring->next_time));
}

static const void *whole_record(struct rings *rings, const struct ring *ring)
{
	size_t offset = ring->tail % rings->data_bytes, to_end = rings->data_bytes - offset;
	const unsigned char *data = data_at(rings, ring, ring->tail);

	if (ring->next_bytes <= to_end)
		return data;
	memcpy(rings->wrapped, data, to_end);
	memcpy(rings->wrapped + to_end, data_at(rings, ring, 0), ring->next_bytes - to_end);
	return rings->wrapped;
}

static void release(struct ring *ring)
{
	atomic_store_explicit((_Atomic uint64_t *)&ring->page->data_tail, ring->tail, memory_order_release);
}

static struct ring *oldest(struct rings *rings)
{
	struct ring *first = NULL;

	for (size_t i = 0; i < rings->count; i++) {
		struct ring *ring = &rings->ring[i];

		if (ring->next_bytes && (!first || ring->next_time < first->next_time))
			first = ring;
	}
	return first;
}

struct drain {
	uint64_t regs_mask, until_ns;
	const struct record_layouts *layouts; /* NULL: record_parse */
	void (*taken)(void *context, const struct record *record);
	void *context;
};

static size_t drain(struct rings *rings, const struct drain *d, uint64_t *bad)
{
	size_t count = 0;

	for (size_t i = 0; i < rings->count; i++) {
		struct ring *ring = &rings->ring[i];

		ring->head =
		    atomic_load_explicit((_Atomic uint64_t *)&ring->page->data_head, memory_order_acquire);
		peek(rings, ring);
	}
	struct ring *first;
	while ((first = oldest(rings)) && first->next_time < d->until_ns) {
		struct record record;
		const void *data = whole_record(rings, first);
		int error = d->layouts ? record_parse_event(data, first->next_bytes, d->layouts, &record)
		                       : record_parse(data, first->next_bytes, d->regs_mask, &record);

		if (error == 0)
			d->taken(d->context, &record);
		else
			++*bad;
		first->tail += first->next_bytes;
		release(first);
		peek(rings, first);
		count++;
	}
	for (size_t i = 0; i < rings->count; i++) {
		struct ring *ring = &rings->ring[i];

		if (ring->tail == ring->head || ring->next_bytes)
			continue;
		++*bad; /* the header is invalid, so the next record cannot be found */
		ring->tail = ring->head;
		release(ring);
	}
	return count;
}

size_t rings_drain(struct rings *rings, uint64_t regs_mask,
    void (*taken)(void *context, const struct record *record), void *context, uint64_t *bad)
{
	const struct drain all = {
	    .regs_mask = regs_mask, .until_ns = UINT64_MAX, .taken = taken, .context = context};

	return drain(rings, &all, bad);
}

size_t rings_drain_events(struct rings *rings, const struct record_layouts *layouts, uint64_t until_ns,
    void (*taken)(void *context, const struct record *record), void *context, uint64_t *bad)
{
	const struct drain some = {
	    .until_ns = until_ns, .layouts = layouts, .taken = taken, .context = context};

	return drain(rings, &some, bad);
}
