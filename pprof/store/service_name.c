/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/service_name.h"

#include <string.h>

static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	    (byte && strchr("._@-", byte));
}

void service_name_clean(const char *text, char name[SERVICE_NAME_BYTES])
{
	size_t length = 0;

	if (!*text)
		text = "unknown";
	for (; length < SERVICE_NAME_BYTES - 1 && text[length]; length++)
		name[length] =
		    is_plain(text[length]) && (length || !strchr(".-", *text)) ? text[length] : '_';
	name[length] = '\0';
}

bool service_name_is_good(const char *name)
{
	char clean[SERVICE_NAME_BYTES];

	if (!*name)
		return false;
	service_name_clean(name, clean);
	return strcmp(name, clean) == 0;
}
