/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, as users write them: text in, bytes or nanoseconds out. Pure. Each returns 0 or
 * -EINVAL. */
#ifndef PPROF_TEXT_QUANTITY_H
#define PPROF_TEXT_QUANTITY_H

#include <stdint.h>

/* Digits; *suffix is what follows them. */
int quantity_number(const char *text, uint64_t *number, const char **suffix);

/* "64K", "1G" */
int quantity_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *bytes);

/* "500ms", "10s", "5m", "1h"; 0 needs no unit and is always allowed. */
int quantity_time(const char *text, uint64_t least_ns, uint64_t most_ns, uint64_t *time_ns);

/* "64:4K", "1M:", ":100": MIN:MAX. Either side may be missing. A value alone is both. */
int quantity_bytes_range(const char *text, uint64_t *least, uint64_t *most);
int quantity_time_range(const char *text, uint64_t *least_ns, uint64_t *most_ns);

#endif
