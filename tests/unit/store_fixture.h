/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of stores that never were on a disk. */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include "pprof/store/store_list.h"
#include "pprof/table/array.h"

#include <stdio.h>
#include <string.h>

/* Services must come in the order of their names. Returns the service's number. */
static inline uint32_t fixture_service(struct store_list *list, const char *service)
{
	if (list->service_count && strcmp(list->services[list->service_count - 1], service) == 0)
		return (uint32_t)list->service_count - 1;
	assert_int_equal(array_reserve(&list->services, &list->service_room, list->service_count + 1,
	                     sizeof(*list->services)),
	    0);
	strcpy(list->services[list->service_count], service);
	return (uint32_t)list->service_count++;
}

/* Files of a service must come by time. */
static inline void fixture_add(
    struct store_list *list, const char *service, int64_t time_s, pid_t pid, const char *kind, uint64_t bytes)
{
	char day[STORE_NAME_DAY_BYTES], base[STORE_NAME_FILE_BYTES];
	struct store_name name = {.time_s = time_s, .pid = pid};
	struct store_file file = {.time_s = time_s, .bytes = bytes, .pid = pid};

	snprintf(name.kind, sizeof(name.kind), "%s", kind);
	assert_int_equal(store_name_format(&name, day, base), 0);
	assert_true(store_name_parse(day, base, &name));
	file.class = (uint8_t)name.class;
	file.service = fixture_service(list, service);
	assert_int_equal(intern_add(&list->kinds, kind, strlen(kind), &file.kind), 0);
	assert_int_equal(
	    array_reserve(&list->files, &list->file_room, list->file_count + 1, sizeof(file)), 0);
	list->files[list->file_count++] = file;
}

#endif
