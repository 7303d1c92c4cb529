/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk backend of one program run (proto/walk.h): what its hook is told, and what it has counted.
 *
 *   a dump was unwound, without a guess  -> its rows are published (walk_rows.h), and its number is known
 *   a walked sample was dumped as well   -> the first tells which stack the number is; it and any other is
 *                                           compared with what the hook has found
 *   the same, and no room for a dump     -> the hook says itself which stack it is; 1 in N is compared later
 *   the hook has counted                 -> the books of that process, once the number is known; until then,
 *                                           and if its dump never comes, the samples are without a stack
 *
 * If a comparison fails, the file of the row that led astray gets no rows any more, and it is counted.
 */
#ifndef SAMPLER_BOOKS_WALKED_H
#define SAMPLER_BOOKS_WALKED_H

#include "sampler/books/process.h"
#include "sampler/intake/walk.h"

#include <stdint.h>

struct walked; /* the state of one run */

/* For struct region_options: one of so many walked samples is dumped as well. one_in: the number that was
 * asked for; 0 for the default. */
uint32_t walked_interval(uint64_t one_in);

/* Empties the tables that an earlier sampler has left: from now on walked stacks have numbers of ours. */
void walked_begin(struct program_run *run);
void walked_free(struct program_run *run);

/* Learns from a dump, which became `stack` of the process. time_ns: when the dump was taken. */
void walked_learn(struct process *process, const struct walk_result *walk, uint32_t stack, uint64_t time_ns);

/* A sample whose stack the hook has walked, and that was dumped as well. The dump became `stack` of the
 * process. */
struct dumped_walk {
	const struct walk_result *walk;
	uint32_t number, stack; /* stack: UINT32_MAX if memory is short */
	uint64_t time_ns;       /* when the dump was taken */
};

/* Whether a sample of that number is in the counts that are entered here. If not, it is treated like a
 * sample that was not walked: its number was given out under an earlier sampler, or is made up. */
bool walked_is_ours(const struct process *process, uint32_t number);

/* Takes such a sample if walked_is_ours(). Returns 0, or -ENOMEM: no memory for what the number means. */
int walked_dumped(struct process *process, const struct dumped_walk *dumped);

/* Takes the stack that the hook itself gives for a number, walked at time_ns. It is believed if it has the
 * number's hash, so there is nothing to compare. Otherwise, or if the number is known, nothing is kept of
 * it. Returns 0 or -ENOMEM. */
int walked_told(struct process *process, const struct walk_result *walk, uint32_t number, uint64_t time_ns);

/* Enters the counts since the last call into the books, and makes up for files that were unmapped. To be
 * called after the program run's dumps were drained. maps_follow: as in struct intake. Returns the number of
 * samples. */
size_t walked_drain(struct program_run *run, bool maps_follow);

/* For the comments of a profile: samples that were compared, and how many of these differed; stacks that
 * the hook itself gave, without a dump. */
struct walked_counters {
	uint64_t compared, different, by_frames;
};
struct walked_counters walked_counters(const struct program_run *run);

#endif
