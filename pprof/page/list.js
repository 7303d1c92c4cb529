// SPDX-License-Identifier: Apache-2.0
"use strict";

/* The services and their processes. */
const list = (() => {
	const REFRESH_MS = 10000,
		SNAPSHOTS_LEAST = 4; /* TREND_POINTS_LEAST of pprof/analysis/trend.h */
	const opened = new Set(); /* services whose processes are shown */
	let processes = [],
		looksAt = {} /* the answer that `opened` and the rows are from */,
		pids = new Map() /* how many processes have each pid */,
		timer = 0,
		open = null,
		sort = { key: "inuse", down: true };

	/* What chooses a process: its pid; or a profile, if the pid is not known or is not unique. */
	function place(process) {
		if (process.members) return { ...address.USUAL, service: process.service };
		const own = process.pid && pids.get(process.pid) === 1;
		return { ...address.USUAL, ...(own ? { pid: String(process.pid) } : { id: process.id }) };
	}

	const later = text => el("span", { class: "quiet later" }, text);

	/* "+12.3 MiB/h ±1.2 MiB" of a process that grows by more than chance. */
	function growth(process) {
		if (process.members) return groupGrowth(process);
		if (!Number.isFinite(process.growth_per_hour))
			return points(process).length < SNAPSHOTS_LEAST
				? later("after " + SNAPSHOTS_LEAST + " snapshots")
				: "";
		return el(
			"span",
			{ class: "verdict more" },
			el("span", {}, words.change(process.growth_per_hour, "bytes") + "/h"),
			el(
				"span",
				{ class: "doubt" },
				process.growth_error > 0 ? " \u00b1" + words.bytes(process.growth_error) : "",
			),
			el("span", { class: "word" }, " \u25b2"),
		);
	}

	/* The page of a service says how it grows. */
	function groupGrowth(group) {
		const growing = group.members.filter(p => Number.isFinite(p.growth_per_hour)).length;
		const isLong = p => points(p).length >= SNAPSHOTS_LEAST;
		if (!growing) return growth(group.members.find(isLong) || group.members[0]);
		return el(
			"a",
			{ class: "verdict more", href: address.text({ ...place(group), tab: "growth" }) },
			growing + " of " + group.members.length + (growing === 1 ? " grows" : " grow"),
		);
	}

	function points(process) {
		return (process.points || []).map(point => ({
			time: point.time_ns / 1e6,
			inuse: point.inuse,
		}));
	}

	/* The name of a process, with the words that tell it apart from other processes of its program. */
	function nameCell(p) {
		const link = el(
			"a",
			{ class: "mono", href: address.text(place(p)) },
			p.members ? p.service : p.name || p.program || "unknown program",
		);
		if (p.members) return groupCell(p, link);
		return el(
			"span",
			{ class: p.under ? "name under" : "name" },
			link,
			el(
				"span",
				{ class: "quiet place" },
				(p.pid ? "pid " + p.pid : "several processes, or not known") +
					(p.running || !p.pid ? "" : " \u00b7 ended"),
			),
			p.service && p.service !== p.program && !p.under
				? el("span", { class: "quiet place" }, p.service)
				: "",
		);
	}

	function groupCell(group, link) {
		const isOpen = opened.has(group.service),
			ended = group.all.length - group.members.length;
		return el(
			"span",
			{ class: "name" },
			el(
				"button",
				{
					type: "button",
					class: "twist",
					"aria-expanded": String(isOpen),
					"aria-label": "the processes of " + group.service,
					"data-service": group.service,
					onclick: () => {
						isOpen ? opened.delete(group.service) : opened.add(group.service);
						draw();
						const same = [...$("list-rows").querySelectorAll(".twist")];
						same.find(button => button.dataset.service === group.service)?.focus();
					},
				},
				isOpen ? "\u25be" : "\u25b8",
			),
			link,
			el(
				"span",
				{ class: "quiet place" },
				words.count(group.members.length) +
					" processes" +
					(group.running ? (ended ? " \u00b7 " + ended + " ended" : "") : " \u00b7 ended"),
			),
		);
	}

	const columns = [
		{
			key: "name",
			name: true,
			title: "process",
			number: false,
			of: p => (p.members ? p.service : (p.name || p.program) + p.pid),
			cell: nameCell,
		},
		{
			key: "inuse",
			title: "in use",
			number: true,
			of: p => p.inuse ?? -1,
			cell: p => (p.inuse === null || p.inuse === undefined ? "" : words.bytes(p.inuse)),
		},
		{
			key: "error",
			title: "error",
			number: true,
			hint: "one standard error",
			of: p => p.error || 0,
			class: "doubt",
			cell: p =>
				p.inuse ? words.doubt(p.inuse, p.samples, p.error * p.error, p.error !== null) : "",
		},
		{
			key: "rss",
			class: "rss",
			title: "RSS",
			number: true,
			of: p => p.rss || 0,
			cell: p => (p.rss > 0 ? words.bytes(p.rss) : ""),
		},
		{
			key: "growth",
			title: "growth",
			number: true,
			of: p => p.growth_per_hour ?? -Infinity,
			cell: growth,
			class: "growth",
		},
		{
			key: "spark",
			title: "in use over time",
			number: false,
			of: p => (p.points || []).length,
			cell: p => sparkline(points(p)),
			class: "spark-cell",
		},
		{
			key: "snapshots",
			title: "snapshots",
			number: true,
			of: p => p.profiles,
			class: "second",
			hint: "profiles that can be looked at and compared",
			cell: p => (p.profiles ? words.count(p.profiles) : later("none yet")),
		},
	];

	/* Adds up what was last known of each process at each moment. Before its first point and after its
	 * last, a process has nothing. */
	function pointsTogether(members) {
		const all = members
				.flatMap((p, i) => (p.points || []).map(({ time_ns, inuse }) => ({ time_ns, inuse, i })))
				.sort((a, b) => a.time_ns - b.time_ns),
			last = new Float64Array(members.length);
		let sum = 0;
		const points = all.map(({ time_ns, inuse, i }) => {
			sum += inuse - last[i];
			last[i] = inuse;
			return { time_ns, inuse: sum };
		});
		const step = Math.ceil(points.length / 64);
		return points.filter((_, i) => (points.length - 1 - i) % step === 0);
	}

	/* The processes of a service as one row: those that run, or all if none does. Errors are upper
	 * limits, since processes that were forked have samples in common. */
	function groupOf(service, all) {
		const running = all.filter(p => p.running),
			members = running.length ? running : all,
			sum = key => members.reduce((sum, p) => sum + (p[key] || 0), 0);
		return {
			service,
			all,
			members,
			running: running.length > 0,
			inuse: members.some(p => p.inuse !== null && p.inuse !== undefined) ? sum("inuse") : null,
			error: members.some(p => p.error === null) ? null : sum("error"),
			samples: members.every(p => Number.isFinite(p.samples)) ? sum("samples") : NaN,
			rss: members.every(p => p.rss > 0) ? sum("rss") : null,
			profiles: sum("profiles"),
			points: pointsTogether(members),
		};
	}

	/* If several processes are of one service, the row is the service's. Otherwise each process has its
	 * own row. */
	function entries(shown) {
		const of = new Map();
		for (const p of shown)
			if (p.service) of.set(p.service, [...(of.get(p.service) || []), p]);
		const isAlone = p => !p.service || of.get(p.service).length < 2;
		return [
			...[...of].filter(([, all]) => all.length > 1).map(([service, all]) => groupOf(service, all)),
			...shown.filter(isAlone),
		].map((p, number) => ({ ...p, number, class: p.running ? "" : "ended" }));
	}

	function draw() {
		const text = $("list-filter").value.toLowerCase();
		const shown = processes.filter(p =>
			[p.name, p.program, p.pid, p.service, p.host].join(" ").toLowerCase().includes(text),
		);
		if (!processes.length) {
			$("list-rows").replaceChildren(...empty.rows(looksAt));
			return;
		}
		new Table($("list-rows"), {
			caption:
				"In use is an estimate with one standard error. Growth is of all that is in use, and is " +
				"shown if it is more than chance. The page of a process has the growth of each function.",
			columns,
			sort,
			open: p => open(p),
			sorted: by => {
				sort = by;
			},
			below: p =>
				p.members && opened.has(p.service)
					? p.all.map((member, number) => ({
							...member,
							number,
							under: true,
							class: member.running ? "" : "ended",
						}))
					: [],
		}).show(entries(shown), "");
	}

	async function refresh() {
		const answer = await source.json("processes");
		processes = answer.processes;
		looksAt = answer;
		pids = new Map();
		for (const { pid } of processes) pids.set(pid, (pids.get(pid) || 0) + 1);
		draw();
	}

	function stop() {
		clearInterval(timer);
		timer = 0;
	}

	async function show(actions) {
		open = actions.open;
		await refresh();
		stop();
		timer = setInterval(() => {
			if (!document.hidden && !$("list").hidden && !$("list").contains(document.activeElement))
				refresh().catch(error => actions.trouble(error));
		}, REFRESH_MS);
	}

	$("list-filter").addEventListener("input", draw);
	return { show, stop, place, processes: () => processes };
})();
