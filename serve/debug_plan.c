/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/debug_plan.h"

#include <string.h>

#define TOO_LONG "profile duration exceeds server's WriteTimeout"

static bool refuse(struct reply *reply, unsigned int status, const char *text)
{
	reply_go_error(reply, status, text);
	return false;
}

/* seconds= of everything but a CPU profile. */
static bool plan_difference(struct debug_plan *plan, const struct parameters *parameters, const char *text,
    bool supported, struct reply *reply)
{
	int64_t seconds;

	if (parameters_integer(text, &seconds) || seconds <= 0)
		return refuse(reply, 400, "invalid value for \"seconds\" - must be a positive integer");
	if (!supported)
		return refuse(reply, 400, "\"seconds\" parameter is not supported for this profile type");
	if (seconds > DEBUG_SECONDS_MAX)
		return refuse(reply, 400, TOO_LONG);
	if (parameters_integer_or_0(parameters, "debug") != 0)
		return refuse(reply, 400, "seconds and debug params are incompatible");
	plan->kind = DEBUG_DIFFERENCE;
	plan->seconds = (uint32_t)seconds;
	return true;
}

static bool plan_cpu(struct debug_plan *plan, const struct parameters *parameters, struct reply *reply)
{
	const char *text = parameters_get(parameters, "seconds");
	int64_t seconds = 0;

	/* Go asks whether ParseInt has failed, and a number out of range is such a failure. */
	if (!text || parameters_integer(text, &seconds) || seconds <= 0)
		seconds = DEBUG_CPU_SECONDS_DEFAULT;
	if (seconds > DEBUG_SECONDS_MAX)
		return refuse(reply, 400, TOO_LONG);
	*plan = (struct debug_plan){.kind = DEBUG_CPU, .name = "profile", .seconds = (uint32_t)seconds};
	return true;
}

bool debug_plan_make(
    struct debug_plan *plan, const char *name, const struct parameters *parameters, struct reply *reply)
{
	static const struct debug_plan plans[] = {
	    {.kind = DEBUG_HEAP, .name = "heap"},
	    {.kind = DEBUG_HEAP, .name = "allocs", .default_type = "alloc_space"},
	    {.kind = DEBUG_DELTA, .name = "delta_heap"},
	    {.kind = DEBUG_CMDLINE, .name = "cmdline"},
	    {.kind = DEBUG_SYMBOL, .name = "symbol"},
	};
	const char *seconds = parameters_get(parameters, "seconds");

	if (!*name) {
		*plan = (struct debug_plan){.kind = DEBUG_INDEX, .name = ""};
		return true;
	}
	if (strcmp(name, "profile") == 0)
		return plan_cpu(plan, parameters, reply);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		bool is_profile = plans[i].kind == DEBUG_HEAP || plans[i].kind == DEBUG_DELTA;

		if (strcmp(name, plans[i].name) != 0)
			continue;
		*plan = plans[i];
		if (is_profile && seconds && *seconds)
			return plan_difference(plan, parameters, seconds, plans[i].kind == DEBUG_HEAP, reply);
		plan->text = is_profile && parameters_integer_or_0(parameters, "debug") != 0;
		return true;
	}
	return refuse(reply, 404, "Unknown profile");
}
