/* SPDX-License-Identifier: Apache-2.0 */
/* Names for processes and profiles that are the same whenever they are computed: by them nothing is sent
 * twice. */
#ifndef PUSH_IDENTITY_H
#define PUSH_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

struct origin;

enum { IDENTITY_UUID_BYTES = 37 };

/* Of the process that a profile is of, while it executes one program; of an event's profiles another
 * one. Never 0. 0 if the profile does not tell its process. */
uint64_t identity_of_process(const struct origin *origin);

/* A UUID (version 8) of a profile: of its process, or else its bytes, and its time and kind. */
void identity_uuid(
    const struct origin *origin, const void *bytes, size_t length, char uuid[IDENTITY_UUID_BYTES]);

#endif
