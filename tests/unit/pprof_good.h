/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the checker's tests, after cmocka's headers: the one good heap profile as bytes, and what is found in
 * bytes.
 */
#ifndef HEAPTAP_TESTS_UNIT_PPROF_GOOD_H
#define HEAPTAP_TESTS_UNIT_PPROF_GOOD_H

#include <stdlib.h>
#include <string.h>

#include "pprof/check/check.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/codec/wire.h"
#include "pprof/model/schema.h"
#include "tests/unit/pprof_bytes.h"

static inline void encode_good(struct bytes *out, uint64_t *string_count)
{
	struct profile *p = heap_profile();
	struct wire_field field;
	struct wire w;
	uint8_t *data;
	size_t len;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	put(out, data, len);
	w = (struct wire){data, data + len};
	*string_count = 0;
	while (wire_next(&w, &field) > 0)
		*string_count += field.number == PROFILE_STRING_TABLE;
	free(data);
	profile_free(p);
}

static inline void check_zipped(const struct bytes *b, enum check_level level, struct check_report *report)
{
	uint8_t *zipped;
	size_t len;

	assert_int_equal(gzip_encode(b->data, b->len, 1, &zipped, &len), 0);
	assert_int_equal(check_profile(zipped, len, level, CHECK_MAX_BYTES, report), 0);
	free(zipped);
}

/* 'e'rror, 'w'arning or '-' nothing. */
static inline char severity_in(const struct check_report *report, const char *message)
{
	size_t i;

	for (i = 0; i < report->finding_count; i++)
		if (strstr(report->findings[i].message, message))
			return report->findings[i].severity == CHECK_ERROR ? 'e' : 'w';
	return '-';
}

#endif
