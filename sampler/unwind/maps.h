/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps: the executable ranges of one address space, sorted, none overlapping.
 *
 *	0x400000-0x4a0000 /usr/bin/redis-server    KIND_FILE     module, bias
 *	0x7f01000-0x7f09000                        KIND_ANON     code made at run time (JIT)
 *	0x7fff1000-0x7fff3000 [vdso]               KIND_VDSO     module, bias
 *
 * Filled from /proc/PID/maps, MMAP2 records or the target's own list, in any order. A later range replaces
 * what it overlaps. A fork copies the maps, an exec clears them. Not thread-safe.
 */
#ifndef SAMPLER_UNWIND_MAPS_H
#define SAMPLER_UNWIND_MAPS_H

#include "pprof/text/throttle.h"
#include "sampler/unwind/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct maps;

struct jit_rows;
struct cfi_rule;

/*
 * Limits for one process. A target may have as many mappings as it likes, with names as long as it likes: up
 * to the kernel's default limit of 65530 mappings, half of them executable, it could make us keep 128 MiB.
 */
enum {
	MAPS_MAX = 16384, /* ranges */
	MAPS_PATH_BYTES_MAX = 1 << 20,
	MAPS_COPIES_MAX = 16, /* files that are copied from the process' memory: each takes a child */
};

/*
 * Maps of process PID, empty. Files are opened through PID: with EAGER when their range is added (a
 * short-lived process may have ended when its first sample is read), otherwise at the first lookup that needs
 * them. Borrows STORE. NULL: out of memory.
 */
struct maps *maps_new(struct modules *store, pid_t pid, bool eager);
void maps_free(struct maps *maps);

/* Fork: the same ranges for process PID, as many as fit in the room (maps_set_room). NULL if out of
 * memory. */
struct maps *maps_copy(const struct maps *maps, pid_t pid, size_t room_bytes);

/* Exec: forgets every range. */
void maps_clear(struct maps *maps);

/*
 * Adds a range; a range that is not executable only removes what it covers. 0, -EINVAL for a range that is
 * empty or wraps, -ENOSPC beyond MAPS_MAX or MAPS_PATH_BYTES_MAX, -ENOMEM.
 */
int maps_add(struct maps *maps, const struct map_range *range);

/* Adds a range of other maps, with its module, unless something is there. Returns the same as maps_add. */
int maps_share(struct maps *maps, const struct map *map);

/* Removes [start, start + len); ranges that reach beyond it are split. 0 or -ENOMEM. */
int maps_remove(struct maps *maps, uint64_t start, uint64_t len);

/* Replaces the ranges by what /proc/PID/maps says now. Returns 0 or -errno; -ESRCH if the process ended or
 * executed another program meanwhile. After an error the ranges are the old ones, or the first part of the
 * new ones. Ranges beyond the limits are left out. */
int maps_read_proc(struct maps *maps);

/* True if maps_read_proc() would find the same ranges now: the executable lines have the same words. Opens
 * none of the files, which is most of the cost of maps_read_proc(). */
bool maps_are_current(const struct maps *maps);

/*
 * How long to wait before /proc/PID/maps is read again because no map explains an address. The wait doubles
 * each time that reading did not help: code made at run time is never explained, and each reading holds the
 * target's mmap_lock and empties every cache that depends on the maps. BEFORE_NS is the previous answer, 0 at
 * first. Pure.
 */
uint64_t maps_retry_ns(uint64_t before_ns, bool helped);

/*
 * Parses one line of /proc/PID/maps, LINE without its newline. RANGE->path points into LINE. False if the
 * line has another form. Pure.
 */
bool maps_parse_line(const char *line, struct map_range *range);

/*
 * For maps.c alone: goes over the executable lines of /proc/PID/maps, and calls ADD (NULL: nothing) for each
 * until ADD returns an error. *HASH tells whether the lines have changed. Returns 0; -ESRCH if the process
 * ended or executed another program meanwhile; ADD's error; or -errno.
 */
int maps_read_lines(
    pid_t pid, int (*add)(void *context, const struct map_range *range), void *context, uint64_t *hash);

/* The range that holds ADDRESS or NULL. */
const struct map *maps_find(const struct maps *maps, uint64_t address);

/* The same, with the file opened, so that module and bias are known. */
const struct map *maps_module(struct maps *maps, uint64_t address);

/* Sets the rows of code made at run time, from the program that made the code (jit_rows.h). Takes a
 * reference. NULL: none. Call it again when ROWS has changed. */
void maps_set_jit_rows(struct maps *maps, struct jit_rows *rows);

/*
 * The rule for ADDRESS in MAP, which has no file: the rule of code that is known by its bytes
 * (trampolines.h), or of code whose maker gave rows (jit_rows.h). The memory of a range is read once, and the
 * budget below pays for it; the result is forgotten with the range. Never NULL; cfi_unread_rule if the memory
 * may be readable the next time.
 */
const struct cfi_rule *maps_generated_rule(
    struct maps *maps, const struct map *map, uint64_t address, uint16_t e_machine);

size_t maps_count(const struct maps *maps);
const struct map *maps_at(const struct maps *maps, size_t index);

/* The memory of the ranges and of the scratch space. Memory that forked copies share counts in each copy. */
size_t maps_bytes(const struct maps *maps);

/* From now on, ranges are left out if all ranges would take more than so many bytes. 0: no bound. */
void maps_set_room(struct maps *maps, size_t bytes);

struct modules *maps_store(const struct maps *maps);

/* The budget for look-ups of rows for the process' stacks. */
struct throttle *maps_cfi_work(struct maps *maps);

/*
 * Scratch space for the unwinder's cache of this address space: LEN zeroed bytes, allocated at the first
 * call, zeroed again whenever LEN or the ranges have changed since the last call. NULL if out of memory, or
 * if there were too few calls so far to be worth the memory.
 */
void *maps_scratch(struct maps *maps, size_t len);
/* LEN of the last call that returned memory; 0 if there was none */
size_t maps_scratch_bytes(const struct maps *maps);

#endif
