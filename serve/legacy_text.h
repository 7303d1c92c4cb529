/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap profile as text, for debug=1 and for gperftools' clients: the format of heapprofile that pprof, Go's
 * and gperftools' read, with the names of functions as comments as Go writes them.
 *
 *     heap profile: 3: 300 [5: 500] @ heapprofile
 *     3: 300 [5: 500] @ 0x55d0c0ffee 0x55d0c0ff00
 *     #	0x55d0c0ffed	main+0x0	/src/main.c:12
 *
 *     MAPPED_LIBRARIES:
 *     55d0c0000000-55d0c0010000 r-xp 00001000 00:00 0 /usr/bin/program
 */
#ifndef SERVE_LEGACY_TEXT_H
#define SERVE_LEGACY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct profile;

/* Pure. False: it is no heap profile. */
bool legacy_text_write(FILE *out, const struct profile *profile);

/* Any profile as text, for debug=1 of what has no such format: its types, and each stack with its values. */
void legacy_text_write_other(FILE *out, const struct profile *profile);

#endif
