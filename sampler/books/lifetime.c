/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/lifetime.h"

static const struct {
	uint64_t below_ns;
	const char *name;
} classes[LIFETIME_CLASSES] = {
    {1000, "0-1us"},
    {10000, "1us-10us"},
    {100000, "10us-100us"},
    {1000000, "100us-1ms"},
    {10000000, "1ms-10ms"},
    {100000000, "10ms-100ms"},
    {1000000000, "100ms-1s"},
    {10000000000, "1s-10s"},
    {60000000000, "10s-1m"},
    {3600000000000, "1m-1h"},
    {UINT64_MAX, "1h-"},
};

uint32_t lifetime_class(uint64_t ns)
{
	uint32_t class = 0;

	while (class < LIFETIME_CLASSES - 1 && ns >= classes[class].below_ns)
		class ++;
	return class;
}

const char *lifetime_class_name(uint32_t class)
{
	return classes[class].name;
}

void lifetime_add(struct lifetime *lifetime, const struct lifetime_end *end)
{
	double objects = (double)end->weight.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT);

	lifetime->objects += objects;
	if (!end->same_thread)
		lifetime->other_thread_objects += objects;
	else if (end->temporary)
		lifetime->temporary_objects += objects;
	lifetime->samples++;
}
