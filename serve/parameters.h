/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a request: "seconds=5&debug=1". Pure, of bytes that anybody may send.
 *
 * Read as Go's net/url does, since clients were written for Go's handlers: '&' separates, '+' is a space,
 * "%XX" a byte; a part with a wrong escape or with ';' is left out; of several with one name the first
 * counts. A NUL byte becomes U+FFFD. Values need not be valid UTF-8.
 */
#ifndef SERVE_PARAMETERS_H
#define SERVE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PARAMETERS_MAX = 64 /* those behind are left out */ };

struct parameters {
	struct parameter {
		const char *name, *value;
	} items[PARAMETERS_MAX];
	size_t count;
	char *text; /* all strings are in here */
};

/* `query` without its '?'; NULL: none. 0 or -ENOMEM; on 0 the caller calls parameters_fini. */
int parameters_parse(struct parameters *parameters, const char *query);
void parameters_fini(struct parameters *parameters);

/* NULL: not given. */
const char *parameters_get(const struct parameters *parameters, const char *name);

/* As Go's strconv.ParseInt(text, 10, 64): 0; -EINVAL with 0, or -ERANGE with the nearest number. */
int parameters_integer(const char *text, int64_t *number);

/* What Go's handlers make of debug= and gc=: the number, or 0 where there is none. */
int64_t parameters_integer_or_0(const struct parameters *parameters, const char *name);

/*
 * Replaces "%XX" (and with `plus` each '+') in place. Returns the new length, or -EINVAL for a wrong escape.
 * A NUL byte becomes U+FFFD, which takes no more room than "%00" did.
 */
ptrdiff_t parameters_unescape(char *text, bool plus);

#endif
