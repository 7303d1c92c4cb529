/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One shared region on the sampler's side: creates it, and reads what targets wrote without trusting it.
 * Every size and offset is the sampler's own copy; every value is read once into the sampler's memory before
 * it is used.
 */
#ifndef SAMPLER_INTAKE_REGION_H
#define SAMPLER_INTAKE_REGION_H

#include "proto/buffer.h"
#include "proto/region.h"
#include "proto/weight.h"
#include "sampler/intake/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As the kernel calls them where they are mapped: "/memfd:heaptap (deleted)". */
#define REGION_MEMORY_NAME  "heaptap"
#define REGION_BUFFERS_NAME "heaptap-buffers"

struct region {
	int fd;         /* the memfd */
	int buffers_fd; /* of the buffers; -1: unknown, and the hole in the memfd is read in their place */
	uint32_t id;
	uint64_t key;      /* without REGION_KEY_PLACE */
	uint64_t ino, dev; /* to find it in /proc/PID/maps */
	uint32_t segments, large_buffers;
	unsigned char *base;
	struct region_offsets offsets;
	bool anonymous; /* of an offer: shared memory without a name and without seals */
	/* A program run has made the region: it is an offer. Whoever first reads a page that nobody has
	 * written makes that page, and pays for its memory. A hostile program could so make us pay for the
	 * whole region. So we read only pages that have been written. */
	bool sparse;
	/* The processes may walk their stacks. Always false for an offer, whatever its header says: a hostile
	 * program run could so make us pay for the memory of the walk backend's tables. */
	bool walks;
	/* Of a region that the socket gave to a process: the socket's pointer to this region, which
	 * region_close() sets to NULL. Else NULL. */
	struct region **holder;
	pid_t taken_by; /* the process that the socket gave it to, as the kernel says; else 0 */
};

struct region_options {
	uint64_t period_bytes;
	uint32_t dump_bytes;
	uint32_t clock_id;
	uint64_t live_max;          /* samples; rounded up to whole segments */
	uint64_t copy_period_bytes; /* 0: the copy backend is used only if the mode says so */
	uint64_t dumps_most;        /* as in the header */
	enum region_mode mode;
	uint64_t uprobe_dev, uprobe_ino; /* as in the header */
	uint32_t walk;                   /* as in the header */
	uint32_t snapshot_signal;        /* 0: none */
	bool signal_everywhere;          /* not in COMMAND's own process alone */
	bool start_paused, no_peak, record_mmap;
	bool command_line; /* runs report theirs: region_program_command_line() */
};

/* The clock for options.clock_id: CLOCK_MONOTONIC if the hook can read it without a system call (a sandbox
 * might punish one); else CLOCK_MONOTONIC_COARSE, the time of the kernel's last tick, which is always in
 * shared memory. */
uint32_t region_clock(void);

/* Makes and seals a region; takes memory for one page. The caller owns it. Returns 0 or -errno. A spare
 * region is not mapped here yet, which saves three quarters of its cost: before region_map only
 * region_prefault and region_close may be called. */
int region_open_spare(struct region *region, uint32_t id, uint64_t key, const struct region_options *options);
int region_map(struct region *region); /* does nothing if the region is mapped; 0 or -errno */
int region_open(struct region *region, uint32_t id, uint64_t key, const struct region_options *options);
void region_close(struct region *region);

/* Takes the memory that every program run needs from its start, 224 KiB. */
void region_prefault(const struct region *region);

/* Takes over a region that another sampler made, or that a program run has offered. fd is open for reading
 * and writing, and belongs to the region on success, else to the caller. The header must describe the
 * layout that region_open makes. The file must be sealed against shrinking; an anonymous one need not be,
 * since nobody can truncate it (region_offer.h). Returns 0, -EPROTO, or -errno. */
int region_reopen(struct region *region, int fd, bool anonymous);

/* Call it after region_reopen(): adds the file of the buffers to the region. This file, too, must be sealed
 * against shrinking, unless the region is anonymous. The file's size must be exactly that of the buffers. fd
 * belongs to the region on success, else to the caller. Returns 0, -EPROTO, or -errno. */
int region_add_buffers(struct region *region, int fd);

/* *offset: where a part of the region begins. Returns the descriptor of the file that has the part, and sets
 * *offset to where the part begins in that file. */
int region_file_at(const struct region *region, uint64_t *offset);

/* Which pages of a segment have been written: a bit for each page. `slots` is about its slots, `kept` about
 * their entries of the peak. All bits are set if the region is not sparse. */
enum { REGION_SLOTS_PER_PAGE = REGION_PAGE_BYTES / sizeof(struct region_slot) };
struct region_segment_pages {
	uint64_t slots, kept;
};
struct region_segment_pages region_segment_pages(const struct region *region, uint32_t segment);

/* True when no process has it mapped any more; then only region_close may follow. Not for anonymous memory,
 * which has no seals: region_search_all (region_mapped.h). */
bool region_abandoned(struct region *region);

/* The header. Sizes and bounds must not be read from it, but from the sampler's own copies. */
struct region_header *region_header(const struct region *region);

/* NULL for a place that is out of range. */
struct region_place *region_place(const struct region *region, uint32_t place);

/* The walk backend's tables (proto/walk.h); the target may write any of it. */
struct walk_area *region_walk(const struct region *region);

/* All segments of the file; the target may write any of them. */
struct region_segment *region_segments(const struct region *region);

/* The log of stacks (proto/stack_log.h); the target may write any of it. NULL if there is no such place or
 * slot. */
struct stack_log_place *region_stack_log(const struct region *region, uint32_t place);
struct stack_log_slot *region_stack_log_slot(const struct region *region, uint32_t slot);

/* A copy of the tally; each number is read once, but not all at the same instant. */
struct tally region_read_tally(const struct region_tally *tally);

/* Of the bytes in use, in bytes squared; never negative, whatever the process has written. */
double region_live_variance(const struct region_place *place);

/* Owner of a segment: place index, or -1. */
int region_segment_owner(const struct region *region, uint32_t segment);

/* Copies a slot if it is live and whole. */
struct slot_copy {
	uint64_t seq;                /* order number of the insertion here */
	uint64_t freed_order;        /* 0 unless `state` is SLOT_FREED */
	uint64_t address;            /* of the block; 0 in a slot's entry of the peak */
	struct region_sample sample; /* if inherited, as the parent took it: the parent's `seq` and `slot` */
	uint32_t origin_place, unmapped_pages;
	uint16_t flags;
	enum slot_state state; /* SLOT_LIVE or SLOT_FREED */
};
bool region_read_slot(const struct region *region, uint32_t slot, struct slot_copy *copy);

/* The same for a slot that is live or freed, and for a slot's entry of the peak (always freed). */
bool region_read_any(const struct region *region, uint32_t slot, struct slot_copy *copy);
bool region_read_kept(const struct region *region, uint32_t slot, struct slot_copy *copy);

/* Have all pages of a part of the region been written? The part of the second function is a slot's entry of
 * the peak. Both return true if the region is not sparse. */
bool region_is_written(const struct region *region, const void *part, size_t bytes);
bool region_kept_is_there(const struct region *region, uint32_t slot);

/* The present weight of a block. */
struct weight region_weight(const struct slot_copy *copy);

/* Entry `number` of the history of frees; false: not complete yet, or overwritten. */
struct free_copy {
	struct region_sample sample;
	uint64_t freed_ns;
	uint32_t freed_tid, place;
};
bool region_read_free(const struct region *region, uint64_t number, struct free_copy *copy);

struct region_drain {
	/* Gets a copy of the header, but no copy of the stack: the target may change the stack while it is
	 * read. `room` bytes of the stack may be read. In a sparse region these end before the first page
	 * that was never written. False: the buffer is not freed. */
	bool (*taken)(
	    void *context, const struct region_buffer *header, const unsigned char *stack, size_t room);
	/* NULL, or called with the next buffer, to prefetch it. Its header may change while it is read. What
	 * follows the header must not be read: nobody may have written those pages. */
	void (*ahead)(void *context, const struct region_buffer *next, size_t room);
	void *context;
};

/* Calls `taken` for every full buffer, then frees them. Returns how many were freed. */
size_t region_drain_buffers(const struct region *region, const struct region_drain *drain);

/* Frees the buffers that the process at the place was writing when it ended. */
void region_free_half_written(const struct region *region, uint32_t place);

/* Frees what a dead process owned: its segments, its half-written buffers, and in the end its place. */
void region_release_place(const struct region *region, uint32_t place);

/* The same, if the place still has that generation. Otherwise does nothing: the place was given back already,
 * and what is there belongs to another process. */
void region_release_place_of(const struct region *region, uint32_t place, uint32_t generation);

/* Forked children that found no free place, as the program run reports. */
uint64_t region_placeless(const struct region *region);

/* Forked children that changed their user id, and take no more samples because they could not be cut off from
 * the stacks of others (likewise). */
uint64_t region_not_cut_off(const struct region *region);

/* Processes that take no more samples since they have set themselves a limit of memory (likewise). */
uint64_t region_not_afforded(const struct region *region);

/* Which program a program run executes, as the run itself reports: the text may be a lie, and is good for a
 * name only. region_program_path: the path by which the program was executed; for a script, the script's
 * path; "" if there is none. region_program_command_line: the arguments, separated by blanks; for a script,
 * the interpreter is the first of them; "" unless region_options.command_line asked for them. */
void region_program_path(const struct region *region, char path[REGION_PATH_BYTES]);
void region_program_command_line(const struct region *region, char line[REGION_COMMAND_LINE_BYTES]);

/* Why a program run does not use its region, as it reports; NULL: it has reported nothing. */
const char *region_declined_text(const struct region *region);

/* Has the program a malloc of its own, which comes before the hook's? */
bool region_unseen_malloc(const struct region *region);

/* The files, separated by commas, whose calls to the allocator an attached hook does not see. False and "":
 * none is known. */
bool region_unseen_files(const struct region *region, char files[REGION_PATH_BYTES]);

#endif
