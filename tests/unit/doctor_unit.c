/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a service whose main process has not loaded the library. */
#include "sampler/cmd/doctor/doctor_unit.h"
#include "pprof/table/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define RESTART "systemctl restart postgresql@15-main.service"
#define PUT                                                                          \
	"pg_ctlcluster replaces the environment: put LD_PRELOAD = '/lib/x.so' into " \
	"/etc/postgresql/15/main/environment, then: " RESTART

static void the_fix_fits(void **state)
{
	static const struct {
		bool launched, told, older;
		const char *fix;
	} rows[] = {
	    {false, false, true, RESTART},
	    {false, false, false, "what starts it clears the environment: set LD_PRELOAD=/lib/x.so there"},
	    {true, false, false, PUT},
	    {true, false, true, PUT}, /* a restart alone would not help */
	    {true, true, false, RESTART},
	    {true, true, true, RESTART},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char fix[DOCTOR_UNIT_FIX_BYTES];
		const struct doctor_unit facts = {.unit = "postgresql@15-main.service",
		    .library = "/lib/x.so",
		    .launcher = rows[i].launched ? launcher_of_program("/usr/bin/pg_ctlcluster") : NULL,
		    .told = rows[i].told,
		    .older = rows[i].older};

		doctor_unit_fix(&facts, fix);
		assert_string_equal(fix, rows[i].fix);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_fix_fits),
	};

	return cmocka_run_group_tests_name("doctor_unit", tests, NULL, NULL);
}
