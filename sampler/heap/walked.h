/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk backend of one image (proto/walk.h): what its hook is taught, and what it has counted.
 *
 *   a dump was unwound, without a guess  -> its rows are published, and its number is known
 *   a walked sample was dumped as well   -> the first tells which stack the number is; it and any other is
 *                                           compared with what the hook has found
 *   the same, and no room for a dump     -> the hook says itself which stack it is; 1 in N is compared later
 *   the hook has counted                 -> the books of that process, once the number is known; until then,
 *                                           and if its dump never comes, the samples are without a stack
 *
 * A row is only published if libdw's rule says the same in 8 bytes: the caller's frame by stack or frame
 * pointer, return address and frame pointer in memory. Anything else (a signal frame, a guess by frame
 * pointer, generated code) leaves its stacks to the dump.
 *
 * If a comparison fails, the file of the row that led astray teaches nothing any more, and it is counted.
 */
#ifndef SAMPLER_HEAP_WALKED_H
#define SAMPLER_HEAP_WALKED_H

#include "sampler/heap/process.h"
#include "sampler/target/walk.h"

#include <stdint.h>

struct walked; /* of an image */

/* For struct region_options: of so many walked samples one is dumped as well. one_in: what was asked for, 0
 * for the default. */
uint32_t walked_interval(uint64_t one_in);

/* Empties the tables that an earlier sampler has left: what is walked from now on has numbers of ours. */
void walked_begin(struct image *image);
void walked_free(struct image *image);

/* From a dump that became `stack` of the process. time_ns: when it was taken. */
void walked_learn(struct process *process, const struct walk_result *walk, uint32_t stack, uint64_t time_ns);

/* A sample that was walked to the stack of that number, and dumped, which became `stack` of the process. */
struct dumped_walk {
	const struct walk_result *walk;
	uint32_t number, stack; /* UINT32_MAX: there was no memory for it */
	uint64_t time_ns;       /* when it was taken */
};

/* Whether such a sample is in the counts that are entered here. If not (its number was given out under an
 * earlier sampler, or is made up), it is a sample like one that was not walked. */
bool walked_is_ours(const struct process *process, uint32_t number);

/* If so. Returns 0, or -ENOMEM: there is no memory for what the number means. */
int walked_dumped(struct process *process, const struct dumped_walk *dumped);

/* What the hook itself says that the stack of such a number is, taken at time_ns. It is believed if the
 * number has that stack's hash, so there is nothing to compare; else, or if the number is known, nothing is
 * kept of it. Returns 0 or -ENOMEM. */
int walked_told(struct process *process, const struct walk_result *walk, uint32_t number, uint64_t time_ns);

/* Enters what was counted since the last call into the books, and makes up for files that were unmapped.
 * After the image's dumps were drained. maps_follow: as in struct intake. Returns the number of samples. */
size_t walked_drain(struct image *image, bool maps_follow);

/* For comments: samples compared, and of these those that differed; stacks of which no dump but the hook
 * itself has told. */
struct walked_counters {
	uint64_t compared, different, by_frames;
};
struct walked_counters walked_counters(const struct image *image);

#endif
