/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/parameters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

ptrdiff_t parameters_unescape(char *text, bool plus)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at == '+' && plus) {
			*to++ = ' ';
			continue;
		}
		if (*at != '%') {
			*to++ = *at;
			continue;
		}
		int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
		if (low < 0)
			return -EINVAL;
		at += 2;
		if (high || low) {
			*to++ = (char)(high << 4 | low);
		} else {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
		}
	}
	*to = '\0';
	return to - text;
}

/* One part, "NAME=VALUE" or "NAME"; it is changed. */
static void add(struct parameters *parameters, char *part)
{
	char *equals = strchr(part, '=');
	struct parameter *item = &parameters->items[parameters->count];

	if (!*part || strchr(part, ';') || parameters->count == PARAMETERS_MAX)
		return;
	item->name = part;
	item->value = "";
	if (equals) {
		*equals = '\0';
		item->value = equals + 1;
		if (parameters_unescape(equals + 1, true) < 0)
			return;
	}
	if (parameters_unescape(part, true) >= 0)
		parameters->count++;
}

int parameters_parse(struct parameters *parameters, const char *query)
{
	char *rest, *part;

	*parameters = (struct parameters){.text = strdup(query ? query : "")};
	if (!parameters->text)
		return -ENOMEM;
	rest = parameters->text;
	while ((part = strsep(&rest, "&")))
		add(parameters, part);
	return 0;
}

void parameters_fini(struct parameters *parameters)
{
	free(parameters->text);
	parameters->text = NULL;
	parameters->count = 0;
}

const char *parameters_get(const struct parameters *parameters, const char *name)
{
	for (size_t i = 0; i < parameters->count; i++)
		if (strcmp(parameters->items[i].name, name) == 0)
			return parameters->items[i].value;
	return NULL;
}

int parameters_integer(const char *text, int64_t *number)
{
	bool negative = *text == '-', overflow = false;
	int64_t value = 0;

	*number = 0;
	if (*text == '-' || *text == '+')
		text++;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		int digit = *text - '0';

		if (digit < 0 || digit > 9)
			return -EINVAL;
		overflow = overflow || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, negative ? -digit : digit, &value);
	}
	*number = overflow ? negative ? INT64_MIN : INT64_MAX : value;
	return overflow ? -ERANGE : 0;
}

int64_t parameters_integer_or_0(const struct parameters *parameters, const char *name)
{
	const char *text = parameters_get(parameters, name);
	int64_t number = 0;

	if (text)
		(void)parameters_integer(text, &number);
	return number;
}
