/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the decoder and the checker.
 *
 * Beyond not crashing: the two agree about what a profile is (the decoder accepts exactly what has no error
 * at the foreign level), what was accepted can be written, what was written is accepted, and writing it again
 * gives the same bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/check/check.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/model/profile.h"

enum { MAX_BYTES = 1 << 24 };

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

static size_t count_errors(const uint8_t *data, size_t len, enum check_level level)
{
	struct check_report report;
	size_t errors;

	REQUIRE(!check_profile(data, len, level, CHECK_MAX_BYTES, &report));
	errors = report.error_count;
	check_report_fini(&report);
	return errors;
}

static void round_trip(struct profile *p)
{
	uint8_t *first, *second;
	size_t first_len, second_len;
	struct profile *again;

	REQUIRE(!encode_profile(p, &first, &first_len));
	if (first_len) {
		REQUIRE(decode_profile(first, first_len, SIZE_MAX, &again) == DECODE_OK);
		REQUIRE(!encode_profile(again, &second, &second_len));
		REQUIRE(first_len == second_len && !memcmp(first, second, first_len));
		REQUIRE(!count_errors(first, first_len, CHECK_FOREIGN));
		profile_free(again);
		free(second);
	}
	free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct profile *p;
	enum decode_error error = decode_profile(data, len, MAX_BYTES, &p);
	size_t errors = count_errors(data, len, CHECK_FOREIGN);

	count_errors(data, len, CHECK_HEAP);
	if (error == DECODE_TOO_LARGE)
		return 0;
	REQUIRE((error == DECODE_OK) == !errors);
	REQUIRE(*decode_error_string(error));
	if (error)
		return 0;
	profile_compute_mapping_flags(p);
	round_trip(p);
	profile_free(p);
	return 0;
}
