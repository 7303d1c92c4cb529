/* SPDX-License-Identifier: Apache-2.0 */
/* Names for processes and profiles. They are the same whenever they are computed, so nothing is sent twice.
 * */
#ifndef PUSH_IDENTITY_H
#define PUSH_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

struct origin;

enum { IDENTITY_UUID_BYTES = 37 };

/* The number of the process that a profile is of, while the process executes one program. Profiles of an
 * event have another number. 0 if the profile does not tell its process. */
uint64_t identity_of_process(const struct origin *origin);

/* The UUID (version 8) of a profile. It is made of the profile's time, kind and process. If the profile does
 * not tell its process, it is made of the bytes. */
void identity_uuid(
    const struct origin *origin, const void *bytes, size_t length, char uuid[IDENTITY_UUID_BYTES]);

#endif
