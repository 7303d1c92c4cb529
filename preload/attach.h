/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches this process to its session, if it has one: gets a region, tells the sampler what it must know
 * about this program run, and opens its place. It leaves behind no descriptor, no thread, and no signal
 * handler except the one for the snapshot signal. After any failure the hooks only forward calls. Nothing
 * waits for the sampler: until it has opened its perf events, the copy backend takes the samples.
 *
 * It is done in the first hook that is called, since libraries allocate in constructors that run before ours;
 * at the latest in our constructor. When the first constructor runs, the loader has relocated every object,
 * set up thread-local storage, and can list the objects; the libc may not have set `environ` yet (session.c).
 */
#ifndef PRELOAD_ATTACH_H
#define PRELOAD_ATTACH_H

#include <stdbool.h>

/* Once per process; later calls do nothing. On the main thread. */
void attach(void);

/* Makes a mapped region this process'. strict: with such system calls alone as the loader makes. runs: this
 * process ran before the library came; then the header's state is left to the caller, and the snapshot signal
 * to the program. False: declined; the caller unmaps it. */
struct region_header;
bool attach_to(struct region_header *header, bool strict, bool runs);

/* In the constructor, of a process that may not be attached: tells the session why. */
void attach_refuse(void);

/* The same from a hook. False: the caller is not the main thread on its own stack; the constructor will do
 * it. */
bool attach_early(void);

#endif
