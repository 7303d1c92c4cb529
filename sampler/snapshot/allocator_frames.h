/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are the allocator and its wrappers: malloc, operator new, std::allocator... A heap profile
 * is about their callers, and most viewers ignore drop_frames, so these frames are cut off when the profile
 * is written.
 */
#ifndef SAMPLER_SNAPSHOT_ALLOCATOR_FRAMES_H
#define SAMPLER_SNAPSHOT_ALLOCATOR_FRAMES_H

#include <stdbool.h>

/* Is this function the allocator's? The expression is compiled once per process. */
bool allocator_frames_has(const char *function_name);

#endif
