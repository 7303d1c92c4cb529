/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_request.h"

#include "pprof/table/array.h"
#include "pprof/text/quantity.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const verbs[] = {[CONTROL_LIST] = "list",
    [CONTROL_SNAPSHOT] = "snapshot",
    [CONTROL_PROFILE] = "profile",
    [CONTROL_CPU] = "cpu"};

static const char *const answers[] = {[CONTROL_BUSY] = "busy",
    [CONTROL_UNKNOWN] = "unknown",
    [CONTROL_UNSAMPLED] = "unsampled",
    [CONTROL_UNSUPPORTED] = "unsupported",
    [CONTROL_OFF] = "off",
    [CONTROL_ASKED] = "asked",
    [CONTROL_LISTED] = "list",
    [CONTROL_WRITTEN] = "written",
    [CONTROL_PROFILED] = "profile",
    [CONTROL_GONE] = "gone",
    [CONTROL_FAILED] = "failed"};

/* Cuts the first word off *text. */
static const char *take_word(char **text)
{
	char *word = *text, *space = strchr(word, ' ');

	*text = space ? space + 1 : word + strlen(word);
	if (space)
		*space = '\0';
	return word;
}

/* Is the whole of `text` a number of at most `most`? */
static bool parse_number(const char *text, uint64_t most, uint64_t *number)
{
	const char *rest;

	return quantity_number(text, number, &rest) == 0 && !*rest && *number <= most;
}

static bool parse_pid(const char *text, pid_t *pid)
{
	uint64_t number;

	if (!parse_number(text, INT_MAX, &number) || number == 0)
		return false;
	*pid = (pid_t)number;
	return true;
}

static bool parse_duration(const char *text, uint32_t *ms)
{
	uint64_t number;

	if (!parse_number(text, CONTROL_CPU_MS_MAX, &number) || number == 0)
		return false;
	*ms = (uint32_t)number;
	return true;
}

static bool is_service(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= CONTROL_SERVICE_BYTES || utf8_valid_prefix(name, length) != length)
		return false;
	for (const char *at = name; *at; at++)
		if (utf8_control(at))
			return false;
	return true;
}

int control_request_format(const struct control_request *request, char text[CONTROL_REQUEST_BYTES])
{
	char verb[32];
	size_t room = CONTROL_REQUEST_BYTES;
	bool of_pid = request->target == CONTROL_PID || request->target == CONTROL_SESSION;

	snprintf(verb, sizeof(verb), "%s", verbs[request->verb]);
	if (request->verb == CONTROL_LIST)
		return snprintf(text, room, "%s", verb);
	if (request->verb == CONTROL_CPU) {
		if (request->duration_ms < 1 || request->duration_ms > CONTROL_CPU_MS_MAX)
			return -EINVAL;
		snprintf(verb, sizeof(verb), "%s %" PRIu32, verbs[request->verb], request->duration_ms);
	}
	if (of_pid && request->pid < 1)
		return -EINVAL;
	switch (request->target) {
	case CONTROL_ALL:
		return snprintf(text, room, "%s all", verb);
	case CONTROL_PID:
		return snprintf(text, room, "%s %d", verb, (int)request->pid);
	case CONTROL_SESSION:
		return snprintf(text, room, "%s session %d", verb, (int)request->pid);
	case CONTROL_SERVICE:
		if (is_service(request->service))
			return snprintf(text, room, "%s service %s", verb, request->service);
	}
	return -EINVAL;
}

static int parse_target(struct control_request *request, char *text)
{
	if (strcmp(text, "all") == 0) {
		request->target = CONTROL_ALL;
		return 0;
	}
	if (parse_pid(text, &request->pid)) {
		request->target = CONTROL_PID;
		return 0;
	}
	const char *word = take_word(&text);
	if (strcmp(word, "session") == 0 && parse_pid(text, &request->pid)) {
		request->target = CONTROL_SESSION;
		return 0;
	}
	if (strcmp(word, "service") == 0 && is_service(text)) {
		request->target = CONTROL_SERVICE;
		strcpy(request->service, text);
		return 0;
	}
	return -EINVAL;
}

int control_request_parse(struct control_request *request, const void *bytes, size_t length)
{
	char text[CONTROL_REQUEST_BYTES], *rest = text;

	memset(request, 0, sizeof(*request));
	if (length >= sizeof(text) || memchr(bytes, '\0', length))
		return -EINVAL;
	memcpy(text, bytes, length);
	text[length] = '\0';
	if (strcmp(text, verbs[CONTROL_LIST]) == 0) {
		request->verb = CONTROL_LIST;
		return 0;
	}
	const char *verb = take_word(&rest);
	size_t i = CONTROL_SNAPSHOT;
	while (i < ARRAY_COUNT(verbs) && strcmp(verb, verbs[i]) != 0)
		i++;
	if (i == ARRAY_COUNT(verbs))
		return -EINVAL;
	request->verb = (enum control_verb)i;
	if (request->verb == CONTROL_CPU && !parse_duration(take_word(&rest), &request->duration_ms))
		return -EINVAL;
	return parse_target(request, rest);
}

int control_answer_format(const struct control_answer *answer, char text[CONTROL_ANSWER_BYTES])
{
	const char *word = answers[answer->kind];
	size_t room = CONTROL_ANSWER_BYTES;
	int length = 0;

	switch (answer->kind) {
	case CONTROL_BUSY:
	case CONTROL_UNKNOWN:
	case CONTROL_UNSAMPLED:
	case CONTROL_UNSUPPORTED:
	case CONTROL_OFF:
		length = snprintf(text, room, "%s", word);
		break;
	case CONTROL_ASKED:
		length = snprintf(text, room, "%s %" PRIu32, word, answer->count);
		break;
	case CONTROL_LISTED:
		length = snprintf(text, room, "%s %" PRIu64, word, answer->bytes);
		break;
	case CONTROL_PROFILED:
		length = snprintf(text, room, "%s %d %" PRIu64, word, (int)answer->pid, answer->bytes);
		break;
	case CONTROL_GONE:
		length = snprintf(text, room, "%s %d", word, (int)answer->pid);
		break;
	case CONTROL_WRITTEN:
	case CONTROL_FAILED:
		length = snprintf(text, room, "%s %d %s", word, (int)answer->pid, answer->text);
		break;
	}
	return length < (int)room ? length : (int)room - 1;
}

static bool parse_arguments(struct control_answer *answer, char *rest)
{
	uint64_t number;

	switch (answer->kind) {
	case CONTROL_BUSY:
	case CONTROL_UNKNOWN:
	case CONTROL_UNSAMPLED:
	case CONTROL_UNSUPPORTED:
	case CONTROL_OFF:
		return !*rest;
	case CONTROL_ASKED:
		if (!parse_number(rest, UINT32_MAX, &number) || number == 0)
			return false;
		answer->count = (uint32_t)number;
		return true;
	case CONTROL_LISTED:
		return parse_number(rest, CONTROL_LIST_BYTES_MAX, &answer->bytes);
	case CONTROL_PROFILED:
		return parse_pid(take_word(&rest), &answer->pid) &&
		    parse_number(rest, CONTROL_PROFILE_BYTES_MAX, &answer->bytes);
	case CONTROL_GONE:
		return parse_pid(rest, &answer->pid);
	case CONTROL_WRITTEN:
	case CONTROL_FAILED:
		if (!parse_pid(take_word(&rest), &answer->pid))
			return false;
		strcpy(answer->text, rest);
		return answer->kind == CONTROL_FAILED || *rest;
	}
	return false;
}

int control_answer_parse(struct control_answer *answer, const void *bytes, size_t length)
{
	char text[CONTROL_ANSWER_BYTES], *rest = text;

	memset(answer, 0, sizeof(*answer));
	if (length >= sizeof(text) || memchr(bytes, '\0', length))
		return -EPROTO;
	memcpy(text, bytes, length);
	text[length] = '\0';
	const char *word = take_word(&rest);
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++)
		if (strcmp(word, answers[i]) == 0) {
			answer->kind = (enum control_answer_kind)i;
			return parse_arguments(answer, rest) ? 0 : -EPROTO;
		}
	return -EPROTO;
}
