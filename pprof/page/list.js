// SPDX-License-Identifier: Apache-2.0
"use strict";

/* The services and their processes. */
const list = (() => {
	const REFRESH_MS = 10000;
	let processes = [],
		pids = new Map() /* how many processes have each */,
		timer = 0,
		open = null,
		sort = { key: "inuse", down: true };

	/* What chooses a process: its pid, or where that is not known, or not its own alone, a profile of it. */
	function place(process) {
		const own = process.pid && pids.get(process.pid) === 1;
		return { ...address.USUAL, ...(own ? { pid: String(process.pid) } : { id: process.id }) };
	}

	/* "+12.3 MiB/h ±1.2 MiB" of a process that grows by more than chance. */
	function growth(process) {
		if (!Number.isFinite(process.growth_per_hour)) return el("span", { class: "quiet" }, "");
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

	function points(process) {
		return (process.points || []).map(point => ({
			time: point.time_ns / 1e6,
			inuse: point.inuse,
		}));
	}

	const columns = [
		{
			key: "name",
			name: true,
			title: "process",
			number: false,
			of: p => p.program + p.pid,
			cell: p =>
				el(
					"span",
					{ class: "name" },
					el(
						"a",
						{
							class: "mono",
							href: address.text(place(p)),
						},
						p.program || "unknown program",
					),
					el(
						"span",
						{ class: "quiet place" },
						(p.pid ? "pid " + p.pid : "several processes, or not known") +
							(p.running || !p.pid ? "" : " \u00b7 ended"),
					),
					p.service && p.service !== p.program
						? el("span", { class: "quiet place" }, p.service)
						: "",
				),
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
			cell: p => (p.profiles ? words.count(p.profiles) : ""),
		},
	];

	function services(shown) {
		const groups = new Map();
		for (const process of shown) {
			if (!process.service) continue;
			const group = groups.get(process.service) || [];
			group.push(process);
			groups.set(process.service, group);
		}
		return [...groups].filter(([, members]) => members.length > 1);
	}

	function draw() {
		const text = $("list-filter").value.toLowerCase();
		const shown = processes.filter(p =>
			(p.program + " " + p.pid + " " + p.service + " " + p.host).toLowerCase().includes(text),
		);
		const host = $("list-rows");
		host.replaceChildren();
		const groups = services(shown);
		if (groups.length)
			host.append(
				el(
					"p",
					{ class: "services" },
					el("span", { class: "quiet" }, "as one: "),
					...groups.map(([name, members]) =>
						el(
							"a",
							{
								class: "pill",
								href: address.text({
									...address.USUAL,
									service: name,
								}),
							},
							name + " (" + members.length + ")",
						),
					),
				),
			);
		const table = el("div");
		host.append(table);
		if (!processes.length) {
			table.append(
				el(
					"p",
					{ class: "empty quiet" },
					"Nothing is recorded here yet. heaptap record ./server, and heaptap record -P PID " +
						"of a process that runs already, appear by themselves; heaptap serve FOLDER shows " +
						"files. The daemon's processes are shown to root and the group heaptap, another " +
						"user's to root.",
				),
			);
			return;
		}
		new Table(table, {
			caption:
				"In use is an estimate with one standard error. Growth is that of in use, more than chance " +
				"if it is beyond two standard errors.",
			columns,
			sort,
			open: p => open(p),
			sorted: by => {
				sort = by;
			},
		}).show(
			shown.map((p, number) => ({ ...p, number, class: p.running ? "" : "ended" })),
			"",
		);
	}

	async function refresh() {
		processes = (await source.json("processes")).processes;
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
	return { show, stop, growth, place, processes: () => processes };
})();
