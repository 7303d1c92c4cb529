/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects what is known of a process, of which unseen.h makes words: what is inside of the files that it has
 * mapped, by their symbols, and whether its interpreter names its functions.
 *
 * What was read of a file is kept for the next process that has it mapped, and for the next snapshot. Not
 * thread-safe.
 */
#ifndef SAMPLER_HEAP_INSIDE_H
#define SAMPLER_HEAP_INSIDE_H

#include "sampler/heap/unseen.h"
#include "sampler/unwind/maps.h"

#include <sys/types.h>

/* Fills in what the facts say of files. program: path of the executable; "" if it is unknown. */
void inside_look(struct unseen_facts *facts, const struct maps *maps, const char *program);

/* Where in the file an interpreter calls the functions of its language. False: it has none, or makes their
 * code at run time. */
bool inside_runtime_entry(struct module *module, uint64_t *start, uint64_t *end);

/* Fills in what the facts say of a process that runs: its files, whether it names its functions and catches
 * SIGQUIT; nothing of its memory. 0 or -errno. */
int inside_look_at_process(struct unseen_facts *facts, struct modules *modules, pid_t pid);

/* Does the process' environment make its interpreter use malloc for all? */
bool inside_runtime_by_malloc(pid_t pid, enum runtime_kind kind);

/* Does the process' JVM answer SIGQUIT, so that jcmd may ask it? Without the signal's handler (-Xrs) it would
 * end. */
bool inside_asks(pid_t pid);

#endif
