/* SPDX-License-Identifier: Apache-2.0 */
#include "push/target.h"

#include "pprof/analysis/stack_key.h"
#include "pprof/codec/file.h"
#include "pprof/text/log_line.h"
#include "pprof/text/quantity.h"
#include "pprof/text/text.h"
#include "push/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- its URL */

static const struct {
	const char *prefix;
	enum url_protocol protocol;
	bool tls;
	const char *port; /* if none is given, as part of the spool's name */
} schemes[] = {
    {"pyroscope+http://", URL_PYROSCOPE, false, "80"},
    {"pyroscope+https://", URL_PYROSCOPE, true, "443"},
    {"parca+http://", URL_PARCA, false, "80"},
    {"parca+https://", URL_PARCA, true, "443"},
    {"otlp+http://", URL_OTLP, false, "80"},
    {"otlp+https://", URL_OTLP, true, "443"},
};

bool url_is_readable_by_others(const struct url *url)
{
	const char *host = url->address + strlen("http://");
	const size_t length = strcspn(host, host[0] == '[' ? "]/" : ":/");
	char name[URL_BYTES];
	struct in_addr v4;

	snprintf(name, sizeof(name), "%.*s", (int)length, host);
	if (url->tls || strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1") == 0)
		return false;
	return inet_pton(AF_INET, name, &v4) != 1 || (ntohl(v4.s_addr) >> 24) != 127;
}

const char *url_protocol_title(enum url_protocol protocol)
{
	static const char *const titles[] = {"Pyroscope", "Parca", "OTLP"};

	return titles[protocol];
}

static int fail(char *error, size_t error_bytes, const char *text, const char *why)
{
	snprintf(error, error_bytes, "'%s' %s; give " URL_ALLOWED, text, why);
	return -EINVAL;
}

/* Letters, digits, and what else may stand in host and path. Anything else must be percent-encoded; '?'
 * and '#' would end the path, and '@' would put a password where every user of the machine can read it. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');

		if (!letter && !(*text >= '0' && *text <= '9') && !strchr("-._~%/:[]!$&'()*+,;=", *text))
			return false;
	}
	return true;
}

/* The part of text that is the port: 1 to 65535; -EINVAL. "" if there is none. */
static int port_check(const char *port, size_t length)
{
	char digits[8];

	if (length < 2 || length > 6 || strspn(port + 1, "0123456789") < length - 1)
		return -EINVAL;
	memcpy(digits, port + 1, length - 1);
	digits[length - 1] = '\0';
	return atoi(digits) >= 1 && atoi(digits) <= 65535 ? 0 : -EINVAL;
}

/* "pyroscope-host-4040", of letters, digits, '.', '_' and '-' only. */
static void make_name(struct url *url, const char *authority, size_t length, bool has_port, const char *port)
{
	static const char *const words[] = {"pyroscope", "parca", "otlp"};

	snprintf(url->name, sizeof(url->name), "%s-%.*s%s%s", words[url->protocol], (int)length, authority,
	    has_port ? "" : "-", has_port ? "" : port);
	for (char *at = url->name; *at; at++)
		if (strchr(":[]%/!$&'()*+,;=~", *at))
			*at = '-';
}

int url_parse(const char *text, struct url *url, char *error, size_t error_bytes)
{
	size_t scheme = 0, prefix, length, host;
	const char *authority, *colon;

	while (scheme < sizeof(schemes) / sizeof(schemes[0]) &&
	    strncmp(text, schemes[scheme].prefix, strlen(schemes[scheme].prefix)) != 0)
		scheme++;
	if (strncmp(text, "datadog+", strlen("datadog+")) == 0) {
		snprintf(error, error_bytes,
		    "datadog+http:// is gone: use pyroscope+http(s)://, parca+http(s):// or otlp+http(s)://");
		return -EINVAL;
	}
	if (scheme == sizeof(schemes) / sizeof(schemes[0]))
		return fail(error, error_bytes, text, "is no address for profiles");
	prefix = strlen(schemes[scheme].prefix);
	authority = text + prefix;
	length = strcspn(authority, "/");
	if (memchr(authority, '@', length))
		return fail(error, error_bytes, schemes[scheme].prefix,
		    "... has a user or password in it (use --user and --token-file)");
	if (!is_plain(authority) || strlen(authority) > URL_BYTES - 16)
		return fail(error, error_bytes, text, "is too long or has characters that it must not have");
	colon = memrchr(authority, ':', length);
	if (*authority == '[') {
		const char *bracket = memchr(authority, ']', length);

		if (!bracket || bracket == authority + 1)
			return fail(error, error_bytes, text, "has no host");
		colon = bracket + 1 < authority + length ? bracket + 1 : NULL;
	}
	host = colon ? (size_t)(colon - authority) : length;
	if (!host || (*authority != '[' && memchr(authority, ':', host)))
		return fail(error, error_bytes, text, host ? "has two ports" : "has no host");
	if (colon && (*colon != ':' || port_check(colon, length - host)))
		return fail(error, error_bytes, text, "has no port of 1 to 65535");
	url->protocol = schemes[scheme].protocol;
	url->tls = schemes[scheme].tls;
	snprintf(url->address, sizeof(url->address), "http%s://%s", url->tls ? "s" : "", authority);
	for (size_t end = strlen(url->address); url->address[end - 1] == '/';)
		url->address[--end] = '\0';
	make_name(url, authority, length, colon != NULL, schemes[scheme].port);
	return 0;
}

/* ---- what the user wants to be sent there */

enum { TOKEN_BYTES = 4096, MIB = 1 << 20 };

void target_init(struct target *target)
{
	*target = (struct target){.spool_bytes = TARGET_SPOOL_BYTES,
	    .timeout_ns = TARGET_TIMEOUT_NS,
	    .give_up_ns = TARGET_GIVE_UP_NS};
}

void target_fini(struct target *target)
{
	free(target->token_file);
	free(target->user);
	free(target->tenant);
	free(target->ca_file);
	free(target->types);
	labels_fini(&target->labels);
	*target = (struct target){0};
}

static int set_text(char **text, const char *value, const char *name, char *error, size_t error_bytes)
{
	if (!*value || strpbrk(value, "\r\n")) {
		snprintf(error, error_bytes, "%s is empty or has a line break", name);
		return -EINVAL;
	}
	free(*text);
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

static int set_label(struct target *target, const char *text, char *error, size_t error_bytes)
{
	size_t before = target->labels.count + target->labels.left_out;
	char name[LABELS_NAME_BYTES + 2];
	int err;

	labels_name_clean(text, strcspn(text, "="), name);
	if (!labels_may_send(name)) {
		snprintf(error, error_bytes,
		    "label '%s': a pid is not sent as a label, since a server keeps a series for each value",
		    text);
		return -EINVAL;
	}
	err = labels_add_text(&target->labels, text);
	if (!err && target->labels.count > LABELS_SENT_MAX) {
		snprintf(error, error_bytes, "more than %d labels", LABELS_SENT_MAX);
		return -EINVAL;
	}
	if (!err && target->labels.count + target->labels.left_out == before)
		err = -EINVAL;
	if (err == -EINVAL)
		snprintf(error, error_bytes,
		    "label '%s' is not NAME=VALUE, is there already, is empty, or its name begins with __",
		    text);
	return err;
}

int target_set(struct target *target, const char *name, const char *value, char *error, size_t error_bytes)
{
	const struct {
		const char *name;
		char **text;
	} texts[] = {{"token-file", &target->token_file}, {"user", &target->user},
	    {"tenant", &target->tenant}, {"ca-file", &target->ca_file}, {"types", &target->types}};
	char label[256];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(name, texts[i].name) == 0)
			return set_text(texts[i].text, value, name, error, error_bytes);
	if (strcmp(name, "url") == 0)
		return url_parse(value, &target->url, error, error_bytes);
	if (strcmp(name, "label") == 0)
		return set_label(target, value, error, error_bytes);
	if (strncmp(name, "label.", 6) == 0) {
		snprintf(label, sizeof(label), "%s=%s", name + 6, value);
		return set_label(target, label, error, error_bytes);
	}
	if (strcmp(name, "spool") == 0) {
		if (!quantity_bytes(value, 1 << 20, UINT64_C(1) << 40, &target->spool_bytes))
			return 0;
		snprintf(error, error_bytes, "spool '%s' is not 1M to 1024G, for example 50M", value);
		return -EINVAL;
	}
	if (strcmp(name, "give-up") == 0) {
		if (!quantity_time(value, 1000000000, UINT64_C(86400) * 1000000000, &target->give_up_ns))
			return 0;
		snprintf(error, error_bytes, "give-up '%s' is not 1s to 24h, for example 15m", value);
		return -EINVAL;
	}
	if (strcmp(name, "timeout") == 0) {
		if (!quantity_time(value, 1000000, UINT64_C(3600) * 1000000000, &target->timeout_ns) &&
		    target->timeout_ns)
			return 0;
		snprintf(error, error_bytes, "timeout '%s' is not 1ms to 1h, for example 10s", value);
		return -EINVAL;
	}
	return -ENOENT;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return text ? stack_key_mix(hash, text, strlen(text) + 1) : stack_key_mix(hash, "\1", 2);
}

/* From another folder it is another file; where a link leads to may change at any time. */
static uint64_t mix_path(uint64_t hash, const char *path)
{
	char folder[PATH_MAX];

	if (!path || *path == '/' || !getcwd(folder, sizeof(folder)))
		return mix_text(hash, path);
	text_append(folder, sizeof(folder), "/%s", path);
	return mix_text(hash, folder);
}

bool target_name_spool(struct target *target, const char *prefix)
{
	enum { LONGEST = SPOOL_NAME_TARGET_BYTES - sizeof("record--0123456789abcdef") };
	const char *path = strchr(target->url.address + strlen("https://"), '/');
	uint64_t hash;

	snprintf(target->name, sizeof(target->name), "%s%.*s", prefix, (int)LONGEST, target->url.name);
	if (!path && !target->token_file && !target->user && !target->tenant && !target->types &&
	    !target->labels.count && strlen(target->url.name) <= LONGEST)
		return false;
	hash = mix_text(0, target->url.address);
	hash = mix_path(hash, target->token_file);
	hash = mix_text(hash, target->user);
	hash = mix_text(hash, target->tenant);
	hash = mix_text(hash, target->types);
	for (size_t i = 0; i < target->labels.count; i++)
		hash = mix_text(mix_text(hash, target->labels.rows[i].name), target->labels.rows[i].value);
	snprintf(target->name + strlen(target->name), sizeof("-0123456789abcdef"), "-%016" PRIx64, hash);
	return true;
}

const struct target_limits *target_limits(const struct target *target)
{
	/* Pyroscope's are its defaults, less a margin: 2 MiB of profile and labels at once (the burst of
	 * its rate limit), 16000 samples, depth 1000, strings of 65535 bytes, an hour in the past and
	 * ten minutes in the future (pkg/validation/limits.go of v2). Parca refuses nothing up to messages of
	 * 64 MiB, but takes 40 us and 9 kB for each stack of 24 frames (v0.28, by two profiles of 15,000 to
	 * 50,000 stacks); at 150,000 it took 4 GB and gave up after its own minute, each time that it was
	 * sent again. So it gets no more than Pyroscope. A collector of OpenTelemetry takes 20 MiB over
	 * HTTP. */
	static const struct target_limits limits[] = {
	    [URL_PYROSCOPE] = {{19 * MIB / 10 - 1, 15000, 1000, 65535, true}, UINT64_C(59) * 60 * 1000000000,
	        UINT64_C(10) * 60 * 1000000000},
	    [URL_PARCA] = {{19 * MIB / 10 - 1, 15000, SIZE_MAX, SIZE_MAX, false}, 0, 0},
	    [URL_OTLP] = {{16 * MIB, SIZE_MAX, SIZE_MAX, SIZE_MAX, false}, 0, 0},
	};

	return &limits[target->url.protocol];
}

bool target_wants(const struct target *target, const char *type)
{
	const char *at = target->types;
	size_t length = strlen(type);

	if (!at)
		return true;
	while (*at) {
		size_t word = strcspn(at, ", ");

		if (word == length && memcmp(at, type, word) == 0)
			return true;
		at += word;
		at += strspn(at, ", ");
	}
	return false;
}

void target_warn(const struct target *target)
{
	if (target->token_file && url_is_readable_by_others(&target->url))
		log_line("the token for %s is not encrypted on its way, and others may read it: use https",
		    target->url.address);
}

/* The file's first line. */
static int read_token(const char *path, char token[TOKEN_BYTES], char *error, size_t error_bytes)
{
	uint8_t *bytes;
	size_t length;
	int err = file_read(path, TOKEN_BYTES - 1, &bytes, &length);

	if (err) {
		snprintf(error, error_bytes, "cannot read the token in %s: %s", path, strerror(-err));
		return err;
	}
	memcpy(token, bytes, length);
	token[length] = '\0';
	free(bytes);
	token[strcspn(token, "\r\n")] = '\0';
	if (*token && strlen(token) + 1 >= length)
		return 0;
	snprintf(error, error_bytes, "%s does not hold a token: one line, and nothing else", path);
	return -EINVAL;
}

/* Base64 (RFC 4648, section 4) with padding; cut at a multiple of four characters. */
static void base64_encode(const void *bytes, size_t length, char *text, size_t text_bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes;
	size_t to = 0;

	for (size_t i = 0; i < length && to + 5 <= text_bytes; i += 3) {
		unsigned int group = (unsigned int)at[i] << 16;

		group |= i + 1 < length ? (unsigned int)at[i + 1] << 8 : 0;
		group |= i + 2 < length ? at[i + 2] : 0;
		text[to++] = digits[group >> 18];
		text[to++] = digits[group >> 12 & 63];
		text[to++] = i + 1 < length ? digits[group >> 6 & 63] : '=';
		text[to++] = i + 2 < length ? digits[group & 63] : '=';
	}
	text[to] = '\0';
}

int target_authorize(
    const struct target *target, struct http_request *request, char *error, size_t error_bytes)
{
	char token[TOKEN_BYTES] = "", pair[TOKEN_BYTES + 1024], encoded[2 * sizeof(pair)];
	int err = 0;

	error[0] = '\0';
	if (target->token_file) {
		err = read_token(target->token_file, token, error, error_bytes);
		request->secret = err ? NULL : strdup(token);
	}
	if (!err && target->user) {
		snprintf(pair, sizeof(pair), "%s:%s", target->user, token);
		base64_encode(pair, strlen(pair), encoded, sizeof(encoded));
		err = http_request_header(request, "Authorization: Basic %s", encoded);
	} else if (!err && target->token_file) {
		err = http_request_header(request, "Authorization: Bearer %s", token);
	}
	if (!err && target->tenant)
		err = http_request_header(request, "X-Scope-OrgID: %s", target->tenant);
	if (err && !*error)
		snprintf(error, error_bytes, "token, user or tenant cannot be sent: %s", strerror(-err));
	return err;
}
