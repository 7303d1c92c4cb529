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
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct region_header *header;
static struct region_offsets offsets;
static unsigned long segments;
static uint32_t large_buffers;
static time_t deadline;

static unsigned long next(unsigned long *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Maps the file once more, whole: the parts that a program run maps only when it grows are there too. */
static void find_region(void)
{
	const struct region_header *own = own_region();

	if (!own)
		exit(3);
	offsets = own->offsets;
	segments = own->segments;
	large_buffers = own->large_buffers;
	header = (struct region_header *)syscall(SYS_mremap, own, 0ul, offsets.end, MREMAP_MAYMOVE);
	if (header == MAP_FAILED)
		exit(3);
}

static void *part(uint64_t offset)
{
	return (unsigned char *)header + offset;
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
	const bool dropped = next(state) % 4 == 0;
	unsigned char *area = part(dropped ? offsets.dropped_buffers : offsets.buffers);
	unsigned long at = BUFFER_BITMAPS_BYTES, bit = 0;
	unsigned int class = next(state) % BUFFER_CLASSES, number;

	for (unsigned int c = 0; c < class; c++) {
		const uint32_t count = buffer_count(c, large_buffers, dropped);

		at += (unsigned long)count * buffer_class[c].bytes;
		bit += 64 * buffer_words(count);
	}
	/* a bit above the last buffer's means nothing */
	number = next(state) % (buffer_count(class, large_buffers, dropped) % 16 + 1);
	struct region_buffer *buffer =
	    (struct region_buffer *)(area + at + (unsigned long)number * buffer_class[class].bytes);
	for (unsigned long i = 0; i < sizeof(*buffer) / 8; i++)
		((unsigned long *)buffer)[i] = odd_number(state);
	buffer->place = next(state) % 4;
	buffer->regs[2] = (unsigned long)&buffer;
	buffer->content = next(state) % 4;
	buffer->word = BUFFER_FULL;
	area[(bit + number) / 8] |= (unsigned char)(1 << (bit + number) % 8);
	header->copied++;
}

/* Mostly in the first segments, where the others are; and in any of those that are there after growth. */
static void fill_slot(unsigned long *state)
{
	unsigned int segment = next(state) % (next(state) % 64 ? 64 : segments) % segments;

	((unsigned short *)part(offsets.owners))[segment] = (unsigned short)(next(state) % 8);
	struct region_segment *there = &((struct region_segment *)part(offsets.segments))[segment];
	const unsigned int number = next(state) % REGION_SEGMENT_SLOTS;
	struct region_slot *slot = next(state) % 4 ? &there->slots[number] : &there->kept[number];
	slot->sample.size_bytes = odd_number(state);
	slot->sample.period_bytes = odd_number(state);
	slot->sample.stack = (unsigned)next(state);
	slot->flags = (unsigned short)next(state);
	slot->origin_place = (uint16_t)odd_number(state);
	slot->unmapped_pages = (unsigned)odd_number(state);
	slot->sample.slot = (unsigned)odd_number(state);
	slot->word = odd_number(state) << 8 | next(state) % 4;
	there->addresses[number] = odd_number(state);
	there->logged[number] = (struct stack_log_slot){
	    odd_number(state), {(unsigned)odd_number(state), (unsigned)(next(state) % 3)}};
}

static void scribble(unsigned long *state)
{
	const unsigned long from[] = {0, offsets.places, offsets.modules, offsets.stacks,
	    offsets.command_line, offsets.owners, offsets.buffers, offsets.frees, offsets.dropped_buffers,
	    offsets.walk, offsets.stack_log, offsets.segments};
	unsigned long start = from[next(state) % (sizeof(from) / sizeof(from[0]))], value = odd_number(state);
	unsigned long trigger_address = header->trigger_address;

	memcpy((unsigned char *)header + start + next(state) % 4000, &value, 8);
	header->trigger_address = trigger_address; /* else we are the ones who crash */
}

/* Numbers of stacks, rows and counts, and the notes of the loader. */
static void fill_walk(unsigned long *state)
{
	struct walk_area *area = part(offsets.walk);
	const unsigned int number = next(state) % WALK_STACKS;

	switch (next(state) % 6) {
	case 0:
		area->numbers.given = (unsigned)odd_number(state);
		area->numbers.entry[next(state) % WALK_STACK_ENTRIES] = (unsigned)odd_number(state);
		break;
	case 1:
		area->numbers.of[number].hash = odd_number(state);
		area->numbers.of[number].state = (unsigned)odd_number(state);
		break;
	case 2:
		area->rows[next(state) % WALK_ROWS].pc = odd_number(state);
		area->rows[next(state) % WALK_ROWS].rule = odd_number(state);
		break;
	case 3:
		area->generation = odd_number(state);
		area->unmapping = next(state) % 2;
		break;
	case 4: {
		struct walk_counts *counts = &area->counts[next(state) % 4];

		counts->count[number].samples = odd_number(state);
		counts->count[number].bytes_q8 = odd_number(state);
		counts->changed[number / 64] |= odd_number(state);
		((struct region_place *)part(offsets.places))[next(state) % 4].walked++;
		break;
	}
	default: {
		struct loader_log *log = &area->loader_log;
		struct loader_log_file *file = &log->file[next(state) % LOADER_LOG_FILES];

		for (unsigned int i = 0; i < 5; i++)
			((uint64_t *)file)[i] = odd_number(state);
		file->build_id_bytes = (unsigned)odd_number(state);
		snprintf(file->path, sizeof(file->path), "/proc/self/fd/%lu", next(state) % 64);
		log->files = (unsigned)odd_number(state);
		log->count = odd_number(state);
		log->whole_since = 0;
		log->changes = next(state) % 4 ? 0 : odd_number(state);
	}
	}
}

static void fill_stack_log(unsigned long *state)
{
	struct stack_log_place *log =
	    &((struct stack_log_place *)part(offsets.stack_log))[next(state) % STACK_LOG_PLACES];

	log->epoch = (unsigned)(next(state) % 3);
	log->node_count = (unsigned)odd_number(state);
	log->frame_count = (unsigned)odd_number(state);
	log->nodes[next(state) % STACK_LOG_NODES] =
	    (struct stack_log_node){(unsigned)odd_number(state), (unsigned)odd_number(state)};
	log->frames[next(state) % STACK_LOG_FRAMES] =
	    (struct stack_log_frame){odd_number(state), odd_number(state)};
	log->walked[next(state) % WALK_STACKS] =
	    (struct stack_log_name){(unsigned)odd_number(state), (unsigned)(next(state) % 3)};
}

static void claim_place(unsigned long *state)
{
	struct region_place *place =
	    (struct region_place *)part(offsets.places) + next(state) % REGION_PLACES;

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
			case 7:
				fill_walk(&state);
				break;
			case 8:
				fill_stack_log(&state);
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
		struct region_place *place = (struct region_place *)part(offsets.places) + 10 + i;

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
