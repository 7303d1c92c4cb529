/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/rules.h"
#include "sampler/cmd/daemon/policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

/* ---- the file */

static void parse(struct rules *rules, const char *text)
{
	char error[1024] = "";

	if (rules_parse(rules, text, "f", error, sizeof(error)) != 0)
		fail_msg("%s", error);
}

static void nothing_gives_the_defaults(void **state)
{
	struct rules rules;

	parse(&rules, "");
	assert_null(rules.daemon.store);
	assert_int_equal(rules.daemon.disk_bytes, 1 << 30);
	assert_int_equal(rules.daemon.days, 7);
	assert_int_equal(rules.daemon.free_percent, 10);
	assert_int_equal(rules.daemon.cpu_percent, 5);
	assert_int_equal(rules.daemon.memory_bytes, 256 << 20);
	assert_int_equal(rules.daemon.listen_count, 0);
	assert_int_equal(rules.defaults.period_bytes, 512 << 10);
	assert_int_equal(rules.defaults.samples_per_hour, 0);
	assert_int_equal(rules.defaults.interval_ns, RULES_INTERVAL_NS_DEFAULT);
	assert_int_equal(rules.defaults.keep, 0);
	assert_true(rules.defaults.profile);
	assert_false(rules.defaults.attach);
	rules_fini(&rules);
}

static const char whole[] = "\xef\xbb\xbf# comment\n"
                            "[daemon]    # of all\n"
                            "store = /srv/heaptap ; here\n"
                            "disk = 2G # two\ndays = 14\nfree = 5%\ncpu = 10\nmemory = 64M\n"
                            "listen = 127.0.0.1:7071\nlisten = [::1]:7071\nlisten = /run/heaptap/http\n"
                            "token-file = /etc/heaptap/token\n"
                            "[push here]\nurl = anything\n"
                            "[service redis]\n"
                            "match.exe = */redis-server\n"
                            "    */redis-sentinel\n"
                            "match.user = redis\n"
                            "samples-per-hour = 3600\ninterval = 10s\nkeep = 5\n"
                            "label.team = data\nattach = yes\n"
                            "[service]\nperiod = 64K\nlabel.env = prod\nlabel.team = all\ninterval = 0\n"
                            "[service shop/checkout]\nmatch.unit = checkout@*\nprofile = no\n"
                            "[deny]\nexe = /opt/*\nexe = *.bin\nunit = a.service\ncgroup = *x*\nuser = bob\n";

static void every_key_is_read(void **state)
{
	struct rules rules;
	const struct rules_service *redis, *shop;

	parse(&rules, whole);
	assert_string_equal(rules.daemon.store, "/srv/heaptap");
	assert_int_equal(rules.daemon.disk_bytes, INT64_C(2) << 30);
	assert_int_equal(rules.daemon.days, 14);
	assert_int_equal(rules.daemon.free_percent, 5);
	assert_int_equal(rules.daemon.cpu_percent, 10);
	assert_int_equal(rules.daemon.memory_bytes, 64 << 20);
	assert_int_equal(rules.daemon.listen_count, 3);
	assert_string_equal(rules.daemon.token_file, "/etc/heaptap/token");
	assert_int_equal(rules.service_count, 2);
	redis = &rules.services[0];
	shop = &rules.services[1];
	assert_string_equal(redis->name, "redis");
	assert_int_equal(redis->match[RULES_EXE].count, 2);
	assert_string_equal(redis->match[RULES_EXE].globs[1], "*/redis-sentinel");
	assert_int_equal(redis->period_bytes, 0);
	assert_int_equal(redis->samples_per_hour, 3600);
	assert_int_equal(redis->interval_ns, 10 * S);
	assert_int_equal(redis->keep, 5);
	assert_true(redis->attach);
	assert_string_equal(labels_find(&redis->labels, "team"), "data");
	assert_string_equal(labels_find(&redis->labels, "env"), "prod");
	assert_string_equal(shop->title, "shop/checkout");
	assert_string_equal(shop->name, "shop_checkout");
	assert_int_equal(shop->period_bytes, 64 << 10);
	assert_int_equal(shop->interval_ns, 0);
	assert_false(shop->profile);
	assert_int_equal(rules.deny[RULES_EXE].count, 2);
	rules_fini(&rules);
}

/* "FILE:LINE: what is wrong and what is allowed" */
static void errors_name_the_line_and_what_is_allowed(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
	    {"\n[daemon]\ndisk = 500K\n", "f:3: disk '500K' is not 1M or more, for example 500M or 2G"},
	    {"[daemon]\ndays = 0\n", "f:2: days '0' is not a whole number, 1 to 3650"},
	    {"[daemon]\nfree = 100%\n", "f:2: free '100%' is not 0% to 99%"},
	    {"[daemon]\ncpu = 0\n", "f:2: cpu '0' is not 1% to 100%"},
	    {"[daemon]\nmemory = 1M\n", "f:2: memory '1M' is not 16M or more, for example 256M"},
	    {"[daemon]\nstore = here\n", "f:2: store 'here' is not an absolute path"},
	    {"[daemon]\ntoken-file = t\n", "f:2: token-file 't' is not an absolute path"},
	    {"[daemon]\nlisten = 7071\n",
	        "f:2: listen '7071' is neither ADDRESS:PORT, such as 127.0.0.1:7337 or [::1]:7337, nor the "
	        "absolute "
	        "path of a socket"},
	    {"[daemon]\nlisten = ::1:7071\n",
	        "f:2: listen '::1:7071' is neither ADDRESS:PORT, such as 127.0.0.1:7337 or [::1]:7337, nor "
	        "the "
	        "absolute path of a socket"},
	    {"[daemon]\nstores = /x\n",
	        "f:2: 'stores' is none of store, disk, days, free, cpu, memory, listen, token-file"},
	    {"[service x]\nmatch.exe = a\nperiod = 1K\nsamples-per-hour = 5\n",
	        "f:4: period and samples-per-hour exclude each other: give one of them"},
	    {"[service x]\nperiod = 1K\nperiod = 2K\n", "f:3: period is given twice"},
	    {"[service x]\nperiod = 0\n", "f:2: period '0' is not 1 to 1024G bytes, for example 512K"},
	    {"[service x]\nsamples-per-hour = many\n",
	        "f:2: samples-per-hour 'many' is not a whole number, 1 to 100000000"},
	    {"[service x]\ninterval = 500ms\n",
	        "f:2: interval '500ms' is neither 0 nor 1s to 1000h with the unit, for example 10s or 5m"},
	    {"[service x]\nkeep = -1\n",
	        "f:2: keep '-1' is not a whole number, 0 (what the store keeps) to 1000000"},
	    {"[service x]\nattach = true\n", "f:2: attach 'true' is neither yes nor no"},
	    {"[service x]\nprofile = 1\n", "f:2: profile '1' is neither yes nor no"},
	    {"[service x]\nevents = cpu-clock@99\n",
	        "f:2: the daemon samples no perf events: take the line out; heaptap record -e EVENT --pid "
	        "PID "
	        "does, and /debug/pprof/profile of heaptap serve"},
	    {"[service x]\nlabel.__x = 1\n",
	        "f:2: label.__x is no name for a label: letters, digits and '_', not beginning with __"},
	    {"[service x]\nlabel.x =\n", "f:2: label.x is empty"},
	    {"[service x]\nlabel.x = 1\nlabel.x = 2\n", "f:3: label.x is given twice"},
	    {"[service x]\nlabel.service_name = 1\n",
	        "f:2: label.service_name is the name in [service NAME]"},
	    {"[service x]\nmatch.exe =\n", "f:2: match.exe is empty; give a glob such as */redis-server"},
	    {"[service x]\nmatch.label = 1\n",
	        "f:2: 'match.label' is none of match.exe, match.comm, match.unit, match.cgroup, "
	        "match.container, "
	        "match.user, period, samples-per-hour, interval, keep, attach, label.KEY, profile"},
	    {"[service]\nmatch.exe = x\n",
	        "f:2: match.exe is for [service NAME]: [service] has the defaults of all services"},
	    {"[service a]\n[service x]\nprofile = yes\nattach = yes\n",
	        "f:2: [service x] would attach to every process; give it a match.exe, match.unit or another "
	        "match, or "
	        "attach = no"},
	    {"[deny]\ncomm = x\n", "f:2: 'comm' is none of exe, unit, cgroup, user"},
	    {"[servce x]\n",
	        "f:1: [servce x] is none of [daemon], [service], [service NAME], [deny], [push NAME]"},
	    {"[push]\n", "f:1: [push] has no name: [push NAME]"},
	    {"store = /x\n",
	        "f:1: 'store' stands before the first section: [daemon], [service], [service NAME], [deny], "
	        "[push NAME]"},
	    {"[daemon\n", "f:1: a section has no ']'"},
	    {"[daemon]\nstore\n", "f:2: neither [SECTION] nor KEY = VALUE"},
	    {"[daemon]\nnonsense\n[deny]\ncomm = x\n", "f:2: neither [SECTION] nor KEY = VALUE"},
	    /* What libinih goes on after: then an indented section is one, if no key is before it. */
	    {"nonsense\n [service a]\nkeep = 3\n", "f:1: neither [SECTION] nor KEY = VALUE"},
	    {"[daemon]\nno ; key = x\n [service a]\nkeep = 3\n", "f:2: neither [SECTION] nor KEY = VALUE"},
	    {"[deny]\nno # key = x\n [service a]\nkeep = 3\n", "f:2: neither [SECTION] nor KEY = VALUE"},
	    {"[service a ; b]\nkeep = 3\n", "f:1: a section has no ']'"},
	    {"[push a]\n= x\n [service a]\nkeep = -1\n",
	        "f:4: keep '-1' is not a whole number, 0 (what the store keeps) to 1000000"},
	    {"\xef\xbb\xbf\xef\xbb\xbf[servce x]\n",
	        "f:1: [servce x] is none of [daemon], [service], [service NAME], [deny], [push NAME]"},
	    {"[service 12345678901234567890123456789012345678901234567890]\n",
	        "f:1: the name of a section has more than 49 bytes"},
	    {"[daemon]\n12345678901234567890123456789012345678901234567890 = x\n",
	        "f:2: the name of a key has more than 49 bytes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rules rules;
		char error[1024] = "ok";

		assert_int_not_equal(rules_parse(&rules, cases[i].text, "f", error, sizeof(error)), 0);
		assert_string_equal(error, cases[i].error);
		rules_fini(&rules);
	}
}

/* heaptap daemon --check: what follows a fault is read all the same, and no fault is the fault of another. */
static void all_faults_are_told(void **state)
{
	char path[] = "/tmp/heaptap-rules.XXXXXX", expected[4096], printed[4096] = "";
	static const char text[] = "[daemon]\ndisk = lots\ndays 7\n  and more\ncpu = 3\n"
	                           "[servce x]\nfoo = 1\n  bar\n"
	                           "[service a]\nperiod = zzz\nattach = yes\nmatch.exe /bin/x\n"
	                           "[service b]\nattach = yes\n"
	                           "[service c]\nattach = yes\nmatch.exe = /bin/c\n"
	                           "[deny]\nbla = 1\nexe = /bin/d\n";
	int fd = mkstemp(path), pipes[2], kept = dup(STDOUT_FILENO);

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	snprintf(expected, sizeof(expected),
	    "%1$s:2: disk 'lots' is not 1M or more, for example 500M or 2G\n"
	    "%1$s:3: neither [SECTION] nor KEY = VALUE\n"
	    "%1$s:6: [servce x] is none of [daemon], [service], [service NAME], [deny], [push NAME]\n"
	    "%1$s:10: period 'zzz' is not 1 to 1024G bytes, for example 512K\n"
	    "%1$s:12: neither [SECTION] nor KEY = VALUE\n"
	    "%1$s:19: 'bla' is none of exe, unit, cgroup, user\n"
	    "%1$s:13: [service b] would attach to every process; give it a match.exe, match.unit or "
	    "another match, or attach = no\n",
	    path);
	fflush(stdout);
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDOUT_FILENO);
	int err = rules_check(path);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	assert_true(read(pipes[0], printed, sizeof(printed) - 1) > 0);
	assert_int_equal(err, -EINVAL);
	assert_string_equal(printed, expected);
	close(pipes[0]), close(pipes[1]), close(kept), close(fd);
	unlink(path);
}

/* libinih cuts them in silence. */
static void long_lines_are_errors(void **state)
{
	char text[1024] = "[deny]\nexe = /", error[1024];
	struct rules rules;

	memset(text + strlen(text), 'x', 150);
	parse(&rules, text);
	assert_int_equal(strlen(rules.deny[RULES_EXE].globs[0]), 151);
	rules_fini(&rules);
	memset(text + strlen(text), 'x', 150);
	assert_int_not_equal(rules_parse(&rules, text, "f", error, sizeof(error)), 0);
	assert_memory_equal(error, "f:2: a line has more than ", 26);
	rules_fini(&rules);
}

static void files_are_read(void **state)
{
	char path[] = "/tmp/heaptap-rules.XXXXXX", error[8192];
	int fd = mkstemp(path);
	struct rules rules;

	assert_int_equal(write(fd, whole, sizeof(whole) - 1), sizeof(whole) - 1);
	assert_int_equal(rules_read(&rules, path, error, sizeof(error)), 0);
	assert_int_equal(rules.service_count, 2);
	rules_fini(&rules);
	assert_int_equal(write(fd, "\0[deny]\n", 8), 8);
	assert_int_equal(rules_read(&rules, path, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, ": not a text: it has bytes 0"));
	rules_fini(&rules);
	close(fd);
	unlink(path);
	assert_int_equal(rules_read(&rules, path, error, sizeof(error)), -ENOENT);
	rules_fini(&rules);
}

/* ---- decisions */

static struct process_facts redis_facts(void)
{
	struct process_facts facts = {.pid = 4711,
	    .exe = "/usr/bin/redis-server",
	    .comm = "redis-server",
	    .uid = 110,
	    .user = "redis",
	    .has_library = true};

	container_names_of_path(&facts.cgroup, "/system.slice/redis-server.service");
	return facts;
}

static void without_a_rule_a_process_with_the_library_is_profiled(void **state)
{
	struct process_facts facts = redis_facts();
	struct policy policy;
	struct labels labels;
	struct rules rules;

	parse(&rules, "[service]\nlabel.env = prod\nattach = yes\n");
	policy_decide(&policy, &rules, &facts);
	assert_int_equal(policy.answer, POLICY_PROFILE);
	assert_string_equal(policy.reason, "");
	assert_string_equal(policy.service, "redis-server");
	assert_ptr_equal(policy.how, &rules.defaults);
	assert_int_equal(policy_labels(&labels, &policy, &facts, "vm"), 0);
	assert_string_equal(labels_find(&labels, "service_name"), "redis-server");
	assert_string_equal(labels_find(&labels, "unit"), "redis-server.service");
	assert_string_equal(labels_find(&labels, "env"), "prod");
	labels_fini(&labels);
	facts.has_library = false; /* attach = yes of [service] is for sections that choose */
	policy_decide(&policy, &rules, &facts);
	assert_int_equal(policy.answer, POLICY_NO_LIBRARY);
	rules_fini(&rules);
}

static void the_first_section_that_matches_wins(void **state)
{
	struct process_facts facts = redis_facts();
	struct policy policy;
	struct rules rules;

	parse(&rules,
	    "[service other]\nmatch.exe = */redis-server\nmatch.user = alice\n"
	    "[service web]\nmatch.container = *\n"
	    "[service first]\nmatch.comm = nginx\nmatch.comm = redis*\nmatch.user = 110\n"
	    "[service second]\nmatch.unit = redis*\n");
	policy_decide(&policy, &rules, &facts);
	assert_int_equal(policy.answer, POLICY_PROFILE);
	assert_string_equal(policy.service, "first");
	assert_string_equal(policy.service_name, "first");
	assert_true(policy.by_rule);
	facts.uid = 0;
	strcpy(facts.user, "root");
	policy_decide(&policy, &rules, &facts);
	assert_string_equal(policy.service, "second");
	strcpy(facts.cgroup.container_id, "abc");
	policy_decide(&policy, &rules, &facts);
	assert_string_equal(policy.service, "web");
	rules_fini(&rules);
}

static void each_fact_can_be_matched(void **state)
{
	static const char *const matches[] = {"match.exe = /usr/*/redis-*", "match.exe = *server",
	    "match.comm = redis-server", "match.unit = *.service", "match.cgroup = /system.slice/*",
	    "match.user = re?is", "match.user = 110"};
	struct process_facts facts = redis_facts();

	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		struct policy policy;
		struct rules rules;
		char text[256];

		snprintf(text, sizeof(text), "[service x]\n%s\n", matches[i]);
		parse(&rules, text);
		policy_decide(&policy, &rules, &facts);
		assert_string_equal(policy.service, "x");
		rules_fini(&rules);
	}
}

static void processes_are_left_alone_for_a_reason(void **state)
{
	static const struct {
		const char *text, *exe, *comm;
		bool disabled, has_library;
		enum policy_answer answer;
		const char *reason;
	} cases[] = {
	    {"[deny]\nexe = /usr/bin/*\n[service x]\nmatch.exe = *\n", "/usr/bin/a", "a", false, true,
	        POLICY_DENIED, "denied by the configuration: exe = /usr/bin/*"},
	    {"[deny]\nuser = redis\n", "/usr/bin/a", "a", false, true, POLICY_DENIED,
	        "denied by the configuration: user = redis"},
	    {"[deny]\nunit = redis*\n", "/usr/bin/a", "a", false, true, POLICY_DENIED,
	        "denied by the configuration: unit = redis*"},
	    {"[deny]\ncgroup = *\n", "/usr/bin/a", "a", false, true, POLICY_DENIED,
	        "denied by the configuration: cgroup = *"},
	    {"[service x]\nmatch.exe = *\n", "/usr/sbin/sshd", "sshd", false, true, POLICY_BUILT_IN,
	        "never profiled: logins and changes of users"},
	    {"[service x]\nmatch.exe = *\n", "/usr/bin/python3.11", "unattended-upgr", false, true,
	        POLICY_BUILT_IN, "never profiled: package managers"},
	    {"[service x]\nmatch.exe = *\nprofile = no\n", "/bin/a", "a", false, true, POLICY_NOT_WANTED,
	        "profile = no in [service x]"},
	    {"[service]\nprofile = no\n", "/bin/a", "a", false, true, POLICY_NOT_WANTED,
	        "no [service NAME] matches it, and [service] says profile = no"},
	    {"[service]\nprofile = no\n[service x]\nmatch.exe = *\nprofile = yes\n", "/bin/a", "a", false,
	        true, POLICY_PROFILE, ""},
	    {"[service x]\nmatch.exe = *\n", "/bin/a", "a", false, false, POLICY_NO_LIBRARY,
	        "it does not carry the library, and [service x] has no attach = yes"},
	    {"", "/bin/a", "a", false, false, POLICY_NO_LIBRARY,
	        "it does not carry the library, and no [service NAME] matches it"},
	    {"[service x]\nmatch.exe = *\nattach = yes\n", "/bin/a", "a", false, false, POLICY_PROFILE, ""},
	    {"[service]\nattach = yes\n[service x]\nmatch.exe = *\n", "/bin/a", "a", false, false,
	        POLICY_PROFILE, ""},
	    {"", "/bin/a", "a", true, true, POLICY_DISABLED, "HEAPTAP_DISABLE is set in its environment"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct process_facts facts = redis_facts();
		struct policy policy;
		struct rules rules;

		strcpy(facts.exe, cases[i].exe);
		strcpy(facts.comm, cases[i].comm);
		facts.declared.disabled = cases[i].disabled;
		facts.has_library = cases[i].has_library;
		parse(&rules, cases[i].text);
		policy_decide(&policy, &rules, &facts);
		assert_string_equal(policy.reason, cases[i].reason);
		assert_int_equal(policy.answer, cases[i].answer);
		rules_fini(&rules);
	}
}

static void the_machine_itself_is_never_profiled(void **state)
{
	static const char *const programs[] = {"/usr/lib/systemd/systemd-journald", "/usr/sbin/sshd",
	    "/usr/bin/login", "/usr/bin/su", "/usr/bin/sudo", "/usr/bin/dbus-daemon", "/usr/bin/containerd",
	    "/usr/bin/containerd-shim-runc-v2", "/usr/bin/dockerd", "/usr/bin/runc", "/usr/bin/crun",
	    "/usr/bin/conmon", "/usr/bin/kubelet", "/usr/bin/apt-get", "/usr/bin/dpkg", "/usr/bin/heaptap",
	    "/usr/lib/heaptap/heaptap-push", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"};
	static const char *const others[] = {"/usr/bin/redis-server", "/usr/sbin/nginx", "/opt/sudoku",
	    "/usr/bin/sush", "/usr/lib/postgresql/15/bin/postgres", "/usr/bin/python3.11",
	    "/usr/bin/aptly-server", "/usr/bin/ld"};
	struct process_facts facts = {.pid = 2};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		strcpy(facts.exe, programs[i]);
		if (!policy_never(&facts))
			fail_msg("%s", programs[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		strcpy(facts.exe, others[i]);
		if (policy_never(&facts))
			fail_msg("%s", others[i]);
	}
	facts.pid = 1;
	assert_string_equal(policy_never(&facts), "pid 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_gives_the_defaults),
	    cmocka_unit_test(every_key_is_read),
	    cmocka_unit_test(errors_name_the_line_and_what_is_allowed),
	    cmocka_unit_test(all_faults_are_told),
	    cmocka_unit_test(long_lines_are_errors),
	    cmocka_unit_test(files_are_read),
	    cmocka_unit_test(without_a_rule_a_process_with_the_library_is_profiled),
	    cmocka_unit_test(the_first_section_that_matches_wins),
	    cmocka_unit_test(each_fact_can_be_matched),
	    cmocka_unit_test(processes_are_left_alone_for_a_reason),
	    cmocka_unit_test(the_machine_itself_is_never_profiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
