/* SPDX-License-Identifier: Apache-2.0 */
/* Names of services in the store and in labels: letters, digits and `._@-`, at most 128 bytes. */
#ifndef PPROF_STORE_SERVICE_NAME_H
#define PPROF_STORE_SERVICE_NAME_H

#include <stdbool.h>

enum { SERVICE_NAME_BYTES = 128 + 1 };

/* Replaces each other byte, and a dot or a dash at the beginning, by `_`: a folder has this name, and no
 * command may take it for an option. An empty text becomes "unknown". Pure. */
void service_name_clean(const char *text, char name[SERVICE_NAME_BYTES]);

/* Is it what service_name_clean() makes? */
bool service_name_is_good(const char *name);

#endif
