/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a store, and SERVICE@TIME: what is taken for a name is made again from what it says, and a
 * service's name is never a path.
 *
 * Input: a day and a file's name, with a '/' between them.
 */
#include "pprof/store/store_name.h"
#include "pprof/store/store_moment.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *day, const char *file)
{
	char day_again[STORE_NAME_DAY_BYTES], file_again[STORE_NAME_FILE_BYTES];
	struct store_name name;

	if (!store_name_parse(day, file, &name))
		return;
	if (strchr(file, '/') || store_name_format(&name, day_again, file_again) != 0 ||
	    strcmp(day, day_again) != 0 || strcmp(file, file_again) != 0)
		abort();
}

/* Whatever a snapshot is called, there is a name for it. */
static void check_snapshot(const char *snapshot)
{
	struct store_name name = {.time_s = 1795342500, .pid = 7};
	char day[STORE_NAME_DAY_BYTES], file[STORE_NAME_FILE_BYTES];

	store_name_of_snapshot(snapshot, false, &name);
	if (store_name_format(&name, day, file) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char service[SERVICE_NAME_BYTES], *text = malloc(size + 1), *slash;
	int64_t time_s;
	bool has_time;

	memcpy(text, data, size);
	text[size] = '\0';
	check_snapshot(text);
	if (store_moment_split(text, 1795342500, service, &time_s, &has_time) &&
	    (strchr(service, '/') || *service == '.'))
		abort();
	service_name_clean(text, service);
	if (!service_name_is_good(service))
		abort();
	slash = strchr(text, '/');
	if (slash) {
		*slash = '\0';
		check_name(text, slash + 1);
	}
	free(text);
	return 0;
}
