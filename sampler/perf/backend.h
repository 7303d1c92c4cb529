/* SPDX-License-Identifier: Apache-2.0 */
/* How stacks are captured; probe.h says what each backend needs and costs. */
#ifndef SAMPLER_PERF_BACKEND_H
#define SAMPLER_PERF_BACKEND_H

enum backend {
	BACKEND_AUTO,
	BACKEND_UPROBE,
	BACKEND_BREAKPOINT,
	BACKEND_COPY,
	BACKEND_WALK, /* the hook walks the stack; what it cannot walk is copied, or dumped */
};

/* As users write them, in the order of the enum; NULL ends the list. */
extern const char *const backend_names[];
const char *backend_name(enum backend backend);

#endif
