/* SPDX-License-Identifier: Apache-2.0 */
/* A server that profiles are sent to, and what the user wants to be sent there: --to with its options, or a
 * section [push NAME] of the configuration. */
#ifndef PUSH_TARGET_H
#define PUSH_TARGET_H

#include "pprof/model/labels.h"
#include "pprof/store/spool_files.h"
#include "push/fit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;

/* ---- its URL: the protocol and the address of the server, such as pyroscope+https://HOST:PORT/PATH */

enum url_protocol { URL_PYROSCOPE, URL_PARCA, URL_OTLP };

/* What a URL may be, for messages. */
#define URL_ALLOWED "pyroscope+http(s)://HOST[:PORT][/PATH], parca+http(s)://... or otlp+http(s)://..."

enum { URL_BYTES = 1024, URL_NAME_BYTES = 128 /* SPOOL_NAME_TARGET_BYTES */ };

struct url {
	enum url_protocol protocol;
	bool tls;
	char address[URL_BYTES];   /* "https://host:4040/path", without a slash at the end */
	char name[URL_NAME_BYTES]; /* "pyroscope-host-4040": names the spool where the user named none */
};

/* Pure. 0, or -EINVAL with one line in error. */
int url_parse(const char *text, struct url *url, char *error, size_t error_bytes);

/* Can anybody between us and the server read what is sent? Not with TLS, and not where the host is written as
 * this machine: localhost, 127.x.x.x, [::1]. */
bool url_is_readable_by_others(const struct url *url);

/* "Pyroscope" */
const char *url_protocol_title(enum url_protocol protocol);

/* ---- the target */

#define TARGET_SPOOL_BYTES         (UINT64_C(50) << 20)
#define TARGET_TIMEOUT_NS          (UINT64_C(10) * 1000000000) /* of a request */
#define TARGET_GIVE_UP_NS          (UINT64_C(900) * 1000000000)
#define TARGET_TIMEOUT_ONE_SHOT_NS (UINT64_C(30) * 1000000000)

struct target {
	char name[SPOOL_NAME_TARGET_BYTES]; /* of its section and spool */
	struct url url;
	char *token_file, *user, *tenant, *ca_file; /* NULL: none; owned */
	char *types;                                /* sample types, separated by commas; NULL: all; owned */
	struct labels labels;
	uint64_t spool_bytes, timeout_ns;
	uint64_t give_up_ns; /* so long a profile may keep others from a server that cannot take it */
	bool path_missing;   /* Pyroscope: it answered 404, so /ingest is used */
};

/* Limits beyond which a server refuses a profile by default. */
struct target_limits {
	struct fit_limits fit;
	uint64_t past_ns, future_ns; /* a profile's time may be so far from now; 0: any */
};

void target_init(struct target *target);
void target_fini(struct target *target);

/* Sets an option by the name that it has on the command line and in the file ("url", "token-file",
 * "label.env"). 0, -ENOMEM, -ENOENT for an unknown name, -EINVAL with one line in error. */
int target_set(struct target *target, const char *name, const char *value, char *error, size_t error_bytes);

/* Names a target that the user has not named: "record-pyroscope-host-4040". Where the URL has a path, or
 * there is a token, user, tenant, label or choice of types, a number made of all these follows. What one run
 * leaves in its spool the next run with that name sends as its own, so only equal targets share a name.
 * Returns whether there is a number. */
bool target_name_spool(struct target *target, const char *prefix);

const struct target_limits *target_limits(const struct target *target);

/* Is this sample type wanted? */
bool target_wants(const struct target *target, const char *type);

/* Logs a line if the token will go to another machine without encryption. */
void target_warn(const struct target *target);

/* Adds Authorization and X-Scope-OrgID. The token file is read each time, so that it may be replaced. 0, or
 * -errno with one line in error. */
int target_authorize(
    const struct target *target, struct http_request *request, char *error, size_t error_bytes);

#endif
