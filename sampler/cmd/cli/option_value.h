/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options that quantity.h does not read. Text in, numbers out. Pure. Each returns 0 or -EINVAL. */
#ifndef SAMPLER_CMD_CLI_OPTION_VALUE_H
#define SAMPLER_CMD_CLI_OPTION_VALUE_H

#include "pprof/text/quantity.h"
#include "sampler/write/threshold.h"

#include <stdbool.h>
#include <stdint.h>

/* Index of `value` in a NULL-terminated list, or -EINVAL. */
int option_value_choice(const char *const *choices, const char *value);

/* "100" */
int option_value_count(const char *text, uint64_t least, uint64_t most, uint64_t *count);

/* May it be the name of a program, without its folder? */
bool option_value_is_name(const char *text);

/* "USR1", "SIGUSR2", "RTMIN+3", each with ":all" behind it for *everywhere; "none" is 0. */
int option_value_signal(const char *text, int *number, bool *everywhere);

/* "rss=2G", "inuse=+256M", "alloc=10G", "memory.high". */
int option_value_threshold(const char *text, struct threshold *threshold);

struct option_range {
	bool given;
	uint64_t min, max; /* both included */
};

/* "64:4K", "1M:", ":100", "64"; "1s:1m" in nanoseconds. */
int option_value_bytes_range(const char *text, struct option_range *range);
int option_value_time_range(const char *text, struct option_range *range);

#endif
