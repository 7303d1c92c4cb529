/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/codec/gzip.h"

/* Half text, half noise, so that both of deflate's block types occur. */
static uint8_t *material(size_t len)
{
	uint8_t *data = malloc(len + 1);
	uint64_t random = 1;
	size_t i;

	assert_non_null(data);
	for (i = 0; i < len; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		data[i] = i / 4096 % 2 ? (uint8_t)(random >> 56) : (uint8_t)("heap profile "[i % 13]);
	}
	return data;
}

static void every_size_reads_back(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 4095, 65535, 65536, 65537, 3000000};
	struct gzip_info info;
	size_t i, zipped_len, len;
	uint8_t *zipped, *plain;
	int level;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *data = material(sizes[i]);

		for (level = 1; level <= 9; level += 4) {
			assert_int_equal(gzip_encode(data, sizes[i], level, &zipped, &zipped_len), 0);
			assert_true(gzip_detect(zipped, zipped_len));
			assert_int_equal(gzip_decode(zipped, zipped_len, sizes[i], &plain, &len, &info), 0);
			assert_int_equal(len, sizes[i]);
			assert_memory_equal(plain, data, len);
			assert_int_equal(info.member_count, 1);
			assert_int_equal(info.trailing_bytes, 0);
			free(plain);
			free(zipped);
		}
		free(data);
	}
}

static void impossible_levels_are_refused(void **state)
{
	uint8_t *zipped;
	size_t len;

	assert_int_equal(gzip_encode("x", 1, 0, &zipped, &len), -EINVAL);
	assert_int_equal(gzip_encode("x", 1, 10, &zipped, &len), -EINVAL);
}

static void equal_input_gives_equal_output(void **state)
{
	static const uint8_t no_name_no_time[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0};
	uint8_t *data = material(10000), *first, *second;
	size_t first_len, second_len;

	assert_int_equal(gzip_encode(data, 10000, 6, &first, &first_len), 0);
	assert_int_equal(gzip_encode(data, 10000, 6, &second, &second_len), 0);
	assert_int_equal(first_len, second_len);
	assert_memory_equal(first, second, first_len);
	assert_memory_equal(first, no_name_no_time, sizeof(no_name_no_time));
	free(first);
	free(second);
	free(data);
}

static void members_and_trailing_bytes_are_counted(void **state)
{
	uint8_t *zipped, *plain, *twice;
	struct gzip_info info;
	size_t len, plain_len;

	assert_int_equal(gzip_encode("abc", 3, 6, &zipped, &len), 0);
	twice = calloc(2, len + 8);
	assert_non_null(twice);
	memcpy(twice, zipped, len);
	memcpy(twice + len, zipped, len);
	memcpy(twice + 2 * len, "trail", 5);
	assert_int_equal(gzip_decode(twice, 2 * len + 5, 100, &plain, &plain_len, &info), 0);
	assert_int_equal(plain_len, 6);
	assert_memory_equal(plain, "abcabc", 6);
	assert_int_equal(info.member_count, 2);
	assert_int_equal(info.trailing_bytes, 5);
	free(plain);
	/* What begins like another member has to be one. */
	memcpy(twice + 2 * len, "\x1f\x8b!!!", 5);
	assert_int_equal(gzip_decode(twice, 2 * len + 5, 100, &plain, &plain_len, &info), -EBADMSG);
	free(twice);
	free(zipped);
}

static void every_truncation_is_noticed(void **state)
{
	uint8_t *data = material(9000), *zipped, *plain;
	size_t len, plain_len, cut;

	assert_int_equal(gzip_encode(data, 9000, 6, &zipped, &len), 0);
	for (cut = 0; cut < len; cut++) {
		uint8_t *part = malloc(cut ? cut : 1); /* its own block: a sanitizer sees a read beyond */

		assert_non_null(part);
		memcpy(part, zipped, cut);
		assert_int_equal(gzip_decode(part, cut, 1 << 20, &plain, &plain_len, NULL), -ENODATA);
		free(part);
	}
	free(zipped);
	free(data);
}

static void damage_is_noticed(void **state)
{
	uint8_t *data = material(9000), *zipped, *plain;
	size_t len, plain_len, at;

	assert_int_equal(gzip_encode(data, 9000, 6, &zipped, &len), 0);
	/* The data, the CRC and the length; of the header not every bit means something. */
	for (at = 10; at < len; at++) {
		int err;

		zipped[at] ^= 0x10;
		err = gzip_decode(zipped, len, 1 << 20, &plain, &plain_len, NULL);
		assert_true(err == -EBADMSG || err == -ENODATA);
		zipped[at] ^= 0x10;
	}
	zipped[2] = 9;
	assert_int_equal(gzip_decode(zipped, len, 1 << 20, &plain, &plain_len, NULL), -EBADMSG);
	assert_int_equal(gzip_decode("plain text", 10, 1 << 20, &plain, &plain_len, NULL), -EBADMSG);
	free(zipped);
	free(data);
}

static void a_bomb_stops_at_the_limit(void **state)
{
	size_t len, plain_len, size = 64 << 20;
	uint8_t *data = calloc(1, size), *zipped, *plain;

	assert_non_null(data);
	assert_int_equal(gzip_encode(data, size, 9, &zipped, &len), 0);
	free(data);
	assert_true(len < size / 900);
	assert_int_equal(gzip_decode(zipped, len, 1 << 20, &plain, &plain_len, NULL), -EFBIG);
	assert_int_equal(gzip_decode(zipped, len, size - 1, &plain, &plain_len, NULL), -EFBIG);
	free(zipped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_size_reads_back),
	    cmocka_unit_test(impossible_levels_are_refused),
	    cmocka_unit_test(equal_input_gives_equal_output),
	    cmocka_unit_test(members_and_trailing_bytes_are_counted),
	    cmocka_unit_test(every_truncation_is_noticed),
	    cmocka_unit_test(damage_is_noticed),
	    cmocka_unit_test(a_bomb_stops_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
