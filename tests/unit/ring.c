/* SPDX-License-Identifier: Apache-2.0 */
/* What the perf rings take of a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/perf/ring.h"

#define MIB (UINT64_C(1) << 20)

static void rings_of_large_machines_are_smaller(void **state)
{
	assert_int_equal(rings_share(64 * MIB, 2, 8192 * MIB), 64 * MIB);
	assert_int_equal(rings_share(64 * MIB, 8, 65536 * MIB), 64 * MIB);
	assert_int_equal(rings_share(64 * MIB, 128, 524288 * MIB), 4 * MIB);
	assert_int_equal(rings_share(8 * MIB, 128, 524288 * MIB), 4 * MIB);
	assert_int_equal(rings_share(8 * MIB, 48, 524288 * MIB), 8 * MIB);
	assert_int_equal(rings_share(64 * MIB, 2, 1024 * MIB), 16 * MIB);
	for (uint64_t cpus = 0; cpus < 1 << 16; cpus += 1 + cpus / 16)
		for (uint64_t memory = 0; memory < UINT64_C(1) << 45; memory += 1 + memory) {
			size_t each = rings_share(64 * MIB, cpus, memory);

			assert_int_equal(each & (each - 1), 0);
			assert_in_range(each, 128 << 10, 64 * MIB);
			assert_true(
			    each == 128 << 10 || (each * cpus <= 512 * MIB && each * cpus <= memory / 32));
		}
}

static void a_dump_fits_in_a_record(void **state)
{
	(void)state;
	assert_int_equal(ring_dump_bytes(32768), 32768);
	assert_int_equal(ring_dump_bytes(1001), 1000);
	assert_int_equal(ring_dump_bytes(65536), 64000);
	assert_int_equal(ring_dump_bytes(UINT32_MAX), 64000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_dump_fits_in_a_record), cmocka_unit_test(rings_of_large_machines_are_smaller)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
