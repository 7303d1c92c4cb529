/* SPDX-License-Identifier: Apache-2.0 */
/* Can we attach to a running process? This is examined before the process is touched; the answer is for the
 * user. */
#ifndef SAMPLER_INJECT_FITNESS_H
#define SAMPLER_INJECT_FITNESS_H

#include <stdbool.h>
#include <sys/types.h>

#define FITNESS_ONLY_X86                                                                                    \
	"attaching works only on x86-64, because the called thread returns through a signal frame of that " \
	"machine"

struct fitness {
	char cause[256];  /* why not: "is statically linked"; "" if we can attach */
	char remedy[128]; /* "start it with heaptap record"; "" if there is none */
	bool filtered;    /* it has a seccomp filter */
	bool later;       /* its memory did not answer: it may answer another time */
};

/* True if we can attach. force: a seccomp filter is no obstacle. Never waits long for the process' memory and
 * files (memory_reader.h). */
bool fitness_examine(struct fitness *fitness, pid_t pid, bool force);

#endif
