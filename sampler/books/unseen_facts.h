/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the facts that unseen.h puts into words: what the mapped files of a process hold, by their
 * symbols, and whether its interpreter names its functions.
 *
 * The symbols of a file are kept for the next process that has the file mapped, and for the next snapshot.
 * Not thread-safe.
 */
#ifndef SAMPLER_BOOKS_UNSEEN_FACTS_H
#define SAMPLER_BOOKS_UNSEEN_FACTS_H

#include "sampler/books/unseen.h"
#include "sampler/unwind/maps.h"

#include <sys/types.h>

/* Fills in the facts about files. program: path of the executable; "" if it is unknown. */
void unseen_facts_look(struct unseen_facts *facts, const struct maps *maps, const char *program);

/* Where in the file an interpreter calls the functions of its language. False if the file is no
 * interpreter, or makes their code at run time. */
bool unseen_facts_runtime_entry(struct module *module, uint64_t *start, uint64_t *end);

/* Fills in the facts about a running process: its files, whether it names its functions, whether it
 * catches SIGQUIT; nothing about its memory. Returns 0 or -errno. */
int unseen_facts_look_at_process(struct unseen_facts *facts, struct modules *modules, pid_t pid);

/* Whether the process' environment makes its interpreter use malloc for all objects. */
bool unseen_facts_runtime_by_malloc(pid_t pid, enum runtime_kind kind);

/* Whether the process' JVM answers SIGQUIT, so that jcmd may ask it. Without a handler (-Xrs) the signal
 * would end the JVM. */
bool unseen_facts_asks(pid_t pid);

#endif
