/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/route.h"

#include "pprof/text/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* "http://HOST/path": clients of proxies write so. Returns HOST and the rest, or NULL. */
static const char *skip_scheme(const char *target)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < 2; i++)
		if (strncasecmp(target, schemes[i], strlen(schemes[i])) == 0)
			return target + strlen(schemes[i]);
	return NULL;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static bool is_plain(const char *path)
{
	for (const char *part = path; *part;) {
		size_t length;

		part++; /* skips the slash */
		length = strcspn(part, "/");
		if ((length == 0 && part[0]) || (length == 1 && part[0] == '.') ||
		    (length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part += length;
	}
	return !has_control(path) && utf8_valid_prefix(path, strlen(path)) == strlen(path);
}

/* Does the path begin with `prefix`? Then *path moves behind it. */
static bool skip(const char **path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(*path, prefix, length) != 0)
		return false;
	*path += length;
	return true;
}

/* "4711/..." */
static bool take_pid(const char **path, pid_t *pid)
{
	const char *at = *path;
	long number = 0;

	while (*at >= '0' && *at <= '9' && number <= INT_MAX / 10)
		number = number * 10 + (*at++ - '0');
	if (at == *path || number < 1 || number > INT_MAX || *at != '/')
		return false;
	*pid = (pid_t)number;
	*path = at;
	return true;
}

/* "NAME/debug/pprof": a name may have slashes, as `namespace/container` does. */
static bool take_service(const char **path, char service[ROUTE_SERVICE_BYTES])
{
	const char *end = NULL;
	size_t length;

	for (const char *at = *path; (at = strstr(at, "/debug/pprof")); at++)
		if (at[12] == '/' || !at[12])
			end = at;
	length = end ? (size_t)(end - *path) : 0;
	if (length < 1 || length >= ROUTE_SERVICE_BYTES)
		return false;
	memcpy(service, *path, length);
	service[length] = '\0';
	*path = end;
	return true;
}

/* What is behind /pid/PID or /service/NAME; NULL if the path leads nowhere. */
static const char *read_process(struct route *route)
{
	const char *path = route->path;

	if (!is_plain(path))
		return NULL;
	if (skip(&path, "/pid/")) {
		route->scope = ROUTE_PID;
		return take_pid(&path, &route->pid) ? path : NULL;
	}
	if (skip(&path, "/service/")) {
		route->scope = ROUTE_SERVICE;
		return take_service(&path, route->service) ? path : NULL;
	}
	return path;
}

/* pid= and service= name processes if the path does not. A wrong number is a pid that no process has. */
static void read_scope(struct route *route)
{
	const char *pid = parameters_get(&route->parameters, "pid");
	const char *service = parameters_get(&route->parameters, "service");
	int64_t number;

	if (route->scope != ROUTE_ANY)
		return;
	if (pid && *pid) {
		route->scope = ROUTE_PID;
		if (parameters_integer(pid, &number) == 0 && number > 0 && number <= INT_MAX)
			route->pid = (pid_t)number;
	} else if (service && *service) {
		route->scope = ROUTE_SERVICE;
		if (strlen(service) < ROUTE_SERVICE_BYTES)
			strcpy(route->service, service); /* only compared with names */
	}
}

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

/* Replaces "%XX" (and with `plus` each '+') in place. 0, or -EINVAL for a wrong escape. A NUL byte becomes
 * U+FFFD, which takes no more room than "%00". */
static int unescape(char *text, bool plus)
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
	return 0;
}

/* Takes the target apart: host, path and query, as they came. */
static int split(struct route *route, const char *target)
{
	const char *host = skip_scheme(target);
	const char *path = host ? host + strcspn(host, "/?") : target;
	size_t path_bytes = strcspn(path, "?");

	if (path[0] != '/' && !(host && (path[0] == '?' || !path[0])))
		return -EINVAL;
	if (strlen(target) >= ROUTE_TARGET_BYTES || has_control(target))
		return -EINVAL;
	if (host && !(route->host = strndup(host, (size_t)(path - host))))
		return -ENOMEM;
	route->path = path_bytes ? strndup(path, path_bytes) : strdup("/");
	route->query = strdup(path[path_bytes] ? path + path_bytes + 1 : "");
	return route->path && route->query ? 0 : -ENOMEM;
}

int route_parse(struct route *route, const char *target)
{
	int err;

	*route = (struct route){.below = ""};
	err = split(route, target);
	if (!err)
		err = parameters_parse(&route->parameters, route->query);
	if (!err)
		err = unescape(route->path, false);
	if (err) {
		route_fini(route);
		return err;
	}
	route->below = read_process(route);
	route->is_below_process = route->scope != ROUTE_ANY;
	if (!route->below)
		route->below = "";
	read_scope(route);
	return 0;
}

void route_fini(struct route *route)
{
	parameters_fini(&route->parameters);
	free(route->host);
	free(route->path);
	free(route->query);
	route->host = route->path = route->query = NULL;
}

/* ---- parameters */

/* Adds a part, "NAME=VALUE" or "NAME", and changes its text. */
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
		if (unescape(equals + 1, true) < 0)
			return;
	}
	if (unescape(part, true) == 0)
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
