/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/container_names.h"
#include "sampler/cmd/daemon/declared_names.h"
#include "sampler/cmd/daemon/process_facts.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define UUID "2d3da189-6407-48e3-9ab6-78188d75e609"

/* ---- the environment */

static struct declared_names environment(const char *bytes, size_t length)
{
	struct declared_names names = {0};

	declared_names_of_environment(&names, bytes, length);
	return names;
}

#define ENVIRONMENT(text) environment(text, sizeof(text) - 1)

static void the_environment_names_the_service(void **state)
{
	struct declared_names names;

	names = ENVIRONMENT("PATH=/bin\0OTEL_SERVICE_NAME=shop\0DD_SERVICE=dd\0"
	                    "OTEL_RESOURCE_ATTRIBUTES=service.name=other,service.version=1.2\0");
	assert_string_equal(names.service, "shop");
	assert_string_equal(names.version, "1.2");
	names = ENVIRONMENT("DD_SERVICE=dd\0OTEL_RESOURCE_ATTRIBUTES= deployment.environment.name = prod ,"
	                    "service.name=a%2Cb%20c");
	assert_string_equal(names.service, "a,b c");
	assert_string_equal(names.environment, "prod");
	names = ENVIRONMENT("XOTEL_SERVICE_NAME=no\0OTEL_SERVICE_NAMES=no\0DD_SERVICE=dd");
	assert_string_equal(names.service, "dd");
	names = ENVIRONMENT("POD_NAME=p-1\0POD_NAMESPACE=shop\0CONTAINER_NAME=web\0");
	assert_string_equal(names.pod, "p-1");
	assert_string_equal(names.namespace, "shop");
	assert_string_equal(names.container, "web");
	names = ENVIRONMENT("OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=,=,x,=y,service.name=,,\0=\0");
	assert_string_equal(names.service, "");
	names = ENVIRONMENT("");
	assert_false(names.disabled);
}

static void what_is_said_is_cleaned(void **state)
{
	char longer[1000] = "OTEL_SERVICE_NAME=";
	struct declared_names names;

	names = ENVIRONMENT("OTEL_SERVICE_NAME=a\033[2J\xff\n");
	assert_string_equal(names.service, "a [2J\xef\xbf\xbd ");
	memset(longer + 18, '\xc3', sizeof(longer) - 18);
	names = environment(longer, sizeof(longer));
	assert_true(strlen(names.service) < DECLARED_NAME_BYTES && strlen(names.service) > 200);
}

static void a_process_can_refuse(void **state)
{
	assert_true(ENVIRONMENT("HEAPTAP_DISABLE=1\0").disabled);
	assert_true(ENVIRONMENT("A=B\0HEAPTAP_DISABLE=1").disabled);
	assert_true(ENVIRONMENT("HEAPTAP_DISABLE=yes\0").disabled);
	assert_false(ENVIRONMENT("HEAPTAP_DISABLE=0\0").disabled);
	assert_false(ENVIRONMENT("HEAPTAP_DISABLE=\0").disabled);
	assert_false(ENVIRONMENT("XHEAPTAP_DISABLE=1\0").disabled);
}

/* ---- the process context */

static void memory_of_a_context_is_known_by_its_name(void **state)
{
	uint64_t address = 0;

	assert_true(declared_names_is_context(
	    "7f0a1c000000-7f0a1c001000 rw-s 00000000 00:01 1044    /memfd:OTEL_CTX (deleted)\n", &address));
	assert_int_equal(address, 0x7f0a1c000000);
	assert_true(
	    declared_names_is_context("1000-2000 rw-p 00000000 00:00 0      [anon:OTEL_CTX]\n", &address));
	assert_int_equal(address, 0x1000);
	assert_true(declared_names_is_context("1-2 rw-s 00000000 00:01 1 [anon_shmem:OTEL_CTX]", &address));
	assert_false(
	    declared_names_is_context("1000-2000 rw-p 00000000 00:00 0 /tmp/memfd:OTEL_CTX\n", &address));
	assert_false(declared_names_is_context("", &address));
	assert_false(declared_names_is_context("zzz rw-p 0 0 0 /memfd:OTEL_CTX", &address));
}

/* KeyValue{key, AnyValue{string_value}} */
static size_t put_key_value(uint8_t *to, const char *key, const char *value)
{
	size_t key_length = strlen(key), length = strlen(value), at = 0;

	to[at++] = 0x0a;
	to[at++] = (uint8_t)key_length;
	memcpy(to + at, key, key_length);
	at += key_length;
	to[at++] = 0x12;
	to[at++] = (uint8_t)(length + 2);
	to[at++] = 0x0a;
	to[at++] = (uint8_t)length;
	memcpy(to + at, value, length);
	return at + length;
}

/* Field `number` of bytes. */
static size_t put_message(uint8_t *to, int number, const uint8_t *bytes, size_t length)
{
	to[0] = (uint8_t)(number << 3 | 2);
	to[1] = (uint8_t)length;
	memcpy(to + 2, bytes, length);
	return length + 2;
}

static void both_payloads_are_read(void **state)
{
	uint8_t key_value[128], resource[128], context[128];
	size_t length = put_key_value(key_value, "service.name", "ledger");
	struct declared_names names = {0};

	length = put_message(resource, 1, key_value, length);
	declared_names_of_context(&names, resource, length);
	assert_string_equal(names.context_service, "ledger");
	assert_string_equal(names.service, "");

	length = put_message(context, 1, resource, length);
	length += put_message(
	    context + length, 2, key_value, put_key_value(key_value, "deployment.environment.name", "test"));
	names = (struct declared_names){0};
	declared_names_of_context(&names, context, length);
	assert_string_equal(names.context_service, "ledger");
	assert_string_equal(names.environment, "test");
	for (size_t cut = 0; cut < length; cut++) {
		uint8_t *part = malloc(cut + 1);

		memcpy(part, context, cut);
		declared_names_of_context(&names, part, cut);
		free(part);
	}
}

static void headers_of_other_versions_are_passed_over(void **state)
{
	uint8_t bytes[DECLARED_CONTEXT_HEADER_BYTES] = "OTEL_CTX\2";
	struct declared_context context;

	bytes[12] = 7;
	bytes[16] = 9;
	bytes[24] = 0x10;
	assert_true(declared_names_context_header(bytes, sizeof(bytes), &context));
	assert_int_equal(context.payload_bytes, 7);
	assert_int_equal(context.published_ns, 9);
	assert_int_equal(context.payload, 0x10);
	assert_false(declared_names_context_header(bytes, sizeof(bytes) - 1, &context));
	bytes[15] = 0x40; /* a payload of a gigabyte */
	assert_false(declared_names_context_header(bytes, sizeof(bytes), &context));
	bytes[15] = 0;
	bytes[8] = 3;
	assert_false(declared_names_context_header(bytes, sizeof(bytes), &context));
	bytes[8] = 2;
	bytes[0] = 'o';
	assert_false(declared_names_context_header(bytes, sizeof(bytes), &context));
}

/* ---- pods */

static void folders_of_logs_name_pods(void **state)
{
	struct container_names_pod names;

	assert_true(container_names_parse_pod(&names, "shop_checkout-7d4b_" UUID, UUID));
	assert_string_equal(names.namespace, "shop");
	assert_string_equal(names.pod, "checkout-7d4b");
	assert_false(container_names_parse_pod(&names, "shop_checkout-7d4b_" UUID "x", UUID));
	assert_false(container_names_parse_pod(&names, "_checkout_" UUID, UUID));
	assert_false(container_names_parse_pod(&names, "shop__" UUID, UUID));
	assert_false(container_names_parse_pod(&names, "shop_" UUID, UUID));
	assert_false(container_names_parse_pod(&names, "shop_x_", ""));
	assert_false(container_names_parse_pod(&names, "", UUID));
}

static void a_container_is_known_if_it_is_the_only_one_or_its_log_says_so(void **state)
{
	static char logs[] = "/tmp/heaptap-pods.XXXXXX";
	struct container_names_pod names;
	char path[256], link[300];

	assert_non_null(mkdtemp(logs));
	snprintf(path, sizeof(path), "%s/shop_web-1_%s", logs, UUID);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/nginx");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(container_names_find_pod(&names, logs, UUID, ""));
	assert_string_equal(names.container, "nginx");
	strcpy(strrchr(path, '/'), "/sidecar");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(container_names_find_pod(&names, logs, UUID, "abc"));
	assert_string_equal(names.container, "");
	snprintf(link, sizeof(link), "%s/0.log", path);
	assert_int_equal(symlink("/var/lib/docker/containers/abc/abc-json.log", link), 0);
	assert_true(container_names_find_pod(&names, logs, UUID, "abc"));
	assert_string_equal(names.container, "sidecar");
	assert_false(container_names_find_pod(&names, logs, "00000000-6407-48e3-9ab6-78188d75e609", ""));
	assert_false(container_names_find_pod(&names, "/nonexistent", UUID, ""));
	snprintf(link, sizeof(link), "rm -r %s", logs);
	assert_int_equal(system(link), 0);
}

/* ---- labels */

static void services_are_named_by_the_best_source(void **state)
{
	struct process_facts facts = {.exe = "/usr/sbin/nginx", .comm = "nginx"};
	char name[256];

	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "nginx");
	facts.exe[0] = '\0';
	strcpy(facts.comm, "worker");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "worker");
	strcpy(facts.cgroup.container_id, "abc");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "worker");
	strcpy(facts.declared.container, "web");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "web");
	strcpy(facts.declared.namespace, "shop");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "shop/web");
	strcpy(facts.cgroup.unit, "session-3.scope");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "shop/web");
	strcpy(facts.cgroup.unit, "nginx@eu.service");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "nginx@eu");
	strcpy(facts.declared.context_service, "context");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "context");
	strcpy(facts.declared.service, "environment");
	process_facts_service(&facts, name, sizeof(name));
	assert_string_equal(name, "environment");
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void names_have_an_owner(void **state)
{
	static const struct {
		const char *path, *owner;
	} cases[] = {
	    {"/", "uid-33"},
	    {"/system.slice/nginx.service", "unit-nginx.service"},
	    {"/system.slice/system-sshd.slice/sshd@12-10.0.0.1:22-10.0.0.2:4711.service", "unit-sshd"},
	    {"/system.slice/run-u42.service", "uid-33"},
	    {"/user.slice/user-1000.slice/session-3.scope", "uid-1000"},
	    {"/user.slice/user-1000.slice/user@1000.service/app.slice/chosen.service", "uid-1000"},
	    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "uid-1000"},
	    {"/../../user.slice/user-1000.slice/session-3.scope", "uid-1000"},
	    {"/system.slice/docker-" ID ".scope", "container-" ID},
	    {"/system.slice/docker-" ID ".scope/user-5.slice", "container-" ID},
	    {"/kubepods.slice/kubepods-pod7a2fd3b5_6407_48e3_9ab6_78188d75e609.slice/cri-containerd-" ID
	     ".scope",
	        "pod-7a2fd3b5-6407-48e3-9ab6-78188d75e609"},
	};
	struct process_facts facts = {.uid = 33};
	char owner[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		container_names_of_path(&facts.cgroup, cases[i].path);
		process_facts_account(&facts, owner, sizeof(owner));
		assert_string_equal(owner, cases[i].owner);
	}
}

static void labels_go_through_a_comment(void **state)
{
	struct process_facts facts = {
	    .declared = {.namespace = "shop", .pod = "web-1", .container = "nginx"}};
	struct labels labels, given = {0}, read = {0};
	char *comment;

	strcpy(facts.cgroup.unit, "nginx.service");
	assert_int_equal(labels_add(&given, "team", "a b=c%"), 0);
	assert_int_equal(labels_add(&given, "unit", "mine"), 0);
	assert_int_equal(process_facts_labels(&labels, &facts, "shop/web", "vm", &given), 0);
	comment = labels_comment(&labels);
	assert_string_equal(comment,
	    "labels: team=a%20b=c%25 unit=mine service_name=shop/web host=vm namespace=shop pod=web-1 "
	    "container=nginx");
	assert_int_equal(labels_add_comment(&read, comment + strlen(LABELS_COMMENT)), 0);
	assert_int_equal(read.count, labels.count);
	for (size_t i = 0; i < read.count; i++) {
		assert_string_equal(read.rows[i].name, labels.rows[i].name);
		assert_string_equal(read.rows[i].value, labels.rows[i].value);
	}
	free(comment);
	labels_fini(&labels);
	labels_fini(&given);
	labels_fini(&read);
}

/* ---- a real process */

/* A child that says who it is, in its environment and its memory. */
static void child_run(int ready)
{
	static uint8_t payload[128], resource[128];
	uint8_t *header;
	uint64_t address = (uintptr_t)resource, published = 5;
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	size_t length =
	    put_message(resource, 1, payload, put_key_value(payload, "service.name", "published"));

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		_exit(2);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(header, "OTEL_CTX\2\0\0", 12);
	header[12] = (uint8_t)length;
	memcpy(header + 16, &published, sizeof(published));
	memcpy(header + 24, &address, sizeof(address));
	close(fd);
	if (write(ready, "", 1) != 1)
		_exit(3);
	pause();
}

/* A link's name counts, what a process calls itself later does not. */
static void a_program_is_named_as_it_was_executed(void **state)
{
	static const struct {
		const char *comm, *line, *called;
	} cases[] = {
	    {"redis-server", "/usr/bin/redis-server 127.0.0.1:6379", "redis-server"},
	    {"redis-server", "redis-server", "redis-server"},
	    {"a-name-that-is-", "./a-name-that-is-long", "a-name-that-is-long"},
	    {"MainThread", "/usr/bin/node", ""},
	    {"run.sh", "/bin/sh", ""},
	    {"nginx", "nginx: master process /usr/sbin/nginx", ""},
	    {"sh", "-sh", ""},
	    {"redis", "/usr/bin/redis-server", ""},
	    {"x", "", ""},
	    {"", "/", ""},
	};
	char called[PROCESS_FACTS_CALLED_BYTES], line[256];
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		process_facts_called(cases[i].comm, cases[i].line, called);
		assert_string_equal(called, cases[i].called);
	}
	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	process_facts_called("aaaaaaaaaaaaaaa", line, called);
	assert_string_equal(called, "");
}

static void a_process_is_read(void **state)
{
	struct process_facts facts;
	char own[PATH_MAX] = "", byte;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		child_run(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(process_facts_read(&facts, pid), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	assert_string_equal(facts.exe, own);
	assert_string_equal(process_facts_program(&facts), "identity");
	assert_string_equal(facts.comm, "identity");
	assert_string_equal(facts.called, "identity");
	assert_int_equal(facts.uid, geteuid());
	assert_true(*facts.user);
	assert_int_equal(facts.cgroup.path[0], '/');
	assert_string_equal(facts.declared.context_service, "published");
	assert_true(process_facts_read(&facts, pid) < 0);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_environment_names_the_service),
	    cmocka_unit_test(what_is_said_is_cleaned),
	    cmocka_unit_test(a_process_can_refuse),
	    cmocka_unit_test(memory_of_a_context_is_known_by_its_name),
	    cmocka_unit_test(both_payloads_are_read),
	    cmocka_unit_test(headers_of_other_versions_are_passed_over),
	    cmocka_unit_test(folders_of_logs_name_pods),
	    cmocka_unit_test(a_container_is_known_if_it_is_the_only_one_or_its_log_says_so),
	    cmocka_unit_test(services_are_named_by_the_best_source),
	    cmocka_unit_test(names_have_an_owner),
	    cmocka_unit_test(labels_go_through_a_comment),
	    cmocka_unit_test(a_program_is_named_as_it_was_executed),
	    cmocka_unit_test(a_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
