/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -D_GNU_SOURCE */
/*
 * A target that does its worst to the sampler with what it has been given: the shared region and the trigger.
 *
 *   capture_hostile SECONDS SEED
 *   capture_hostile lie PID...     says that these processes are its children, and keeps the region from
 *                                  being sealed
 */
#include "proto/region_layout.h"
#include "tests/targets/own_region.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct region_header *header;
static unsigned long total, places, owners, buffers, first, modules, frees, segments;
static time_t deadline;

static unsigned long next(unsigned long *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void find_region(void)
{
	header = own_region();
	if (!header)
		exit(3);
	total = region_start_bytes(header);
	places = header->offsets.places;
	modules = header->offsets.modules;
	owners = header->offsets.owners;
	buffers = header->offsets.buffers;
	frees = header->offsets.frees;
	first = header->offsets.segments;
	segments = header->start_segments;
}

/* Numbers that are worse than random ones. */
static unsigned long odd_number(unsigned long *state)
{
	static const unsigned long odd[] = {0, 1, 2, 3, 255, 256, 257, 4096, 65535, 65536, 1ul << 31,
	    (1ul << 32) - 1, 1ul << 32, 1ul << 40, 1ul << 47, 1ul << 62, 1ul << 63, ~0ul, ~0ul - 1};
	unsigned long random = next(state);

	return random % 4 == 0 ? next(state) : odd[(random >> 8) % (sizeof(odd) / sizeof(odd[0]))];
}

static void trigger(unsigned long *state)
{
	void (*call)(unsigned long, unsigned long, unsigned long, unsigned long, unsigned long,
	    unsigned long) = (void (*)(unsigned long, unsigned long, unsigned long, unsigned long,
	    unsigned long, unsigned long))header->trigger_address;
	unsigned long key = next(state) % 3 ? header->key | next(state) % 300 : odd_number(state);

	call(key, next(state) % 2 ? next(state) % 5000 : odd_number(state), odd_number(state),
	    odd_number(state), odd_number(state), odd_number(state));
}

static void fill_buffer(unsigned long *state)
{
	unsigned char *area = (unsigned char *)header + buffers;
	unsigned long at = BUFFER_BITMAPS_BYTES, bit = 0;
	unsigned int class = next(state) % BUFFER_CLASSES, number;

	for (unsigned int c = 0; c < class; c++) {
		at += (unsigned long)buffer_class[c].count * buffer_class[c].bytes;
		bit += 64 * buffer_words(buffer_class[c].count);
	}
	number = next(state) % (class + 1 < BUFFER_CLASSES ? 16 : header->large_buffers % 17 + 1);
	struct region_buffer *buffer =
	    (struct region_buffer *)(area + at + (unsigned long)number * buffer_class[class].bytes);
	for (unsigned long i = 0; i < sizeof(*buffer) / 8; i++)
		((unsigned long *)buffer)[i] = odd_number(state);
	buffer->place = next(state) % 4;
	buffer->regs[2] = (unsigned long)&buffer;
	buffer->word = BUFFER_FULL;
	area[(bit + number) / 8] |= (unsigned char)(1 << (bit + number) % 8);
	header->copied++;
}

static void fill_slot(unsigned long *state)
{
	unsigned int segment = next(state) % segments;

	((unsigned short *)((unsigned char *)header + owners))[segment] = (unsigned short)(next(state) % 8);
	struct region_slot *slot = &((struct region_segment *)((unsigned char *)header + first))[segment]
	                                .slots[next(state) % REGION_SEGMENT_SLOTS];
	slot->sample.size_bytes = odd_number(state);
	slot->sample.period_bytes = odd_number(state);
	slot->flags = (unsigned short)next(state);
	slot->origin_place = (uint16_t)odd_number(state);
	slot->unmapped_pages = (unsigned)odd_number(state);
	slot->sample.slot = (unsigned)odd_number(state);
	slot->word = odd_number(state) << 8 | next(state) % 4;
}

static void scribble(unsigned long *state)
{
	const unsigned long from[] = {0, places, modules, owners, buffers, frees, first};
	unsigned long start = from[next(state) % 7], value = odd_number(state);
	unsigned long trigger_address = header->trigger_address;

	memcpy((unsigned char *)header + start + next(state) % 4000, &value, 8);
	header->trigger_address = trigger_address; /* else we are the ones who crash */
}

static void claim_place(unsigned long *state)
{
	struct region_place *place =
	    (struct region_place *)((unsigned char *)header + places) + next(state) % REGION_PLACES;

	place->pid = next(state) % 2 ? (unsigned)odd_number(state) : (unsigned)(next(state) % 5000);
	place->parent = (unsigned)odd_number(state);
	place->allocated.samples = odd_number(state);
	place->allocated.bytes_q8 = odd_number(state);
	place->state = PLACE_READY;
	header->places_claimed++;
}

static void *attack(void *argument)
{
	unsigned long state = (unsigned long)argument * 0x9e3779b97f4a7c15u + 1;

	while (time(NULL) < deadline) {
		for (int i = 0; i < 2000; i++)
			switch (next(&state) % 16) {
			case 0:
				scribble(&state);
				break;
			case 1:
				claim_place(&state);
				break;
			case 2:
			case 3:
			case 4:
				trigger(&state);
				break;
			case 5:
			case 6:
				fill_buffer(&state);
				break;
			default:
				fill_slot(&state);
			}
		usleep(1000);
	}
	return NULL;
}

/* Whoever is waited for now is waited for for ever. */
static int lie(int count, char *pids[])
{
	char path[64];

	for (int i = 0; i < count; i++) {
		struct region_place *place =
		    (struct region_place *)((unsigned char *)header + places) + 10 + i;

		place->pid = (unsigned)atoi(pids[i]);
		place->allocated.samples = 1;
		place->state = PLACE_READY;
		header->places_claimed++;
	}
	/* among the sampler's descriptors is our region's: seal the seals */
	for (int fd = 3; fd < 1000; fd++) {
		snprintf(path, sizeof(path), "/proc/%u/fd/%d", header->sampler_pid, fd);
		int own = open(path, O_RDWR);
		struct region_header read_header;
		if (own >= 0 && pread(own, &read_header, sizeof(read_header), 0) == sizeof(read_header) &&
		    read_header.magic == REGION_MAGIC && read_header.key == header->key &&
		    fcntl(own, F_ADD_SEALS, F_SEAL_SEAL) != 0)
			return 4;
		if (own >= 0)
			close(own);
	}
	usleep(300000); /* the sampler looks */
	_exit(0);
}

int main(int argc, char *argv[])
{
	pthread_t thread;

	find_region();
	if (argc > 2 && strcmp(argv[1], "lie") == 0)
		return lie(argc - 2, argv + 2);
	deadline = time(NULL) + atoi(argv[1]);
	long seed = atol(argv[2]);
	pthread_create(&thread, NULL, attack, (void *)(seed + 1));
	attack((void *)seed);
	pthread_join(thread, NULL);
	_exit(0); /* our own hook may be in any state */
}
