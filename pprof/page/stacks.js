// SPDX-License-Identifier: Apache-2.0
"use strict";

/* Stacks and what they hold: what is in use (leaked, if the program has ended), and what grows. */
const stacks = (() => {
	const SHOWN = 50,
		FRAMES = 32;

	/* One frame of a stack: { name, label, place, module } */
	function frameLine(frame, found) {
		const place = [frame.place && words.file(frame.place), frame.module && words.file(frame.module)]
			.filter(Boolean)
			.join(" \u00b7 ");
		return el(
			"li",
			{ class: found ? "hit" : "" },
			el("span", { class: "mono", title: frame.name }, frame.label),
			place ? el("span", { class: "quiet place", title: frame.place || frame.module }, place) : "",
		);
	}

	/* numbers: [[text, class], ...] before the frames, innermost frame first. */
	function card(numbers, frames, note) {
		const list = el("ol", { class: "stack" }, ...frames.slice(0, FRAMES));
		if (frames.length > FRAMES)
			list.append(el("li", { class: "quiet" }, frames.length - FRAMES + " more frames"));
		return el(
			"article",
			{ class: "card" },
			el("header", {}, ...numbers.map(([text, kind]) => el("span", { class: kind || "" }, text))),
			note ? el("p", { class: "quiet" }, note) : "",
			list,
		);
	}

	/* The stacks of a graph, largest first. A stack may have several rows, for its threads and ages. */
	function ofGraph(graph, measure, objects) {
		const byNode = new Map();
		for (let row = 0; row < graph.rowCount; row++) {
			if (!(measure.value[row] > 0)) continue;
			const node = graph.rowNode[row];
			let stack = byNode.get(node);
			if (!stack)
				byNode.set(
					node,
					(stack = {
						row,
						value: 0,
						variance: 0,
						samples: 0,
						objects: 0,
						ages: new Map(),
					}),
				);
			stack.value += measure.value[row];
			stack.variance += measure.variance[row];
			stack.samples += measure.samples[row];
			stack.objects += objects ? objects.value[row] : 0;
			if (graph.rowAge && graph.rowAge[row] > 0)
				stack.ages.set(
					graph.rowAge[row],
					(stack.ages.get(graph.rowAge[row]) || 0) + measure.value[row],
				);
		}
		return [...byNode.values()].sort((a, b) => b.value - a.value || a.row - b.row);
	}

	function leaks(host, graph, number, mask, found, shown = SHOWN) {
		const measure = graph.measure(number, mask),
			objects = graph.kinds.find(kind => kind.name === "inuse-objects");
		const list = ofGraph(graph, measure, objects),
			path = [];
		const sum = list.reduce(
			(all, stack) => ({
				value: all.value + stack.value,
				variance: all.variance + stack.variance,
			}),
			{ value: 0, variance: 0 },
		);
		host.replaceChildren(
			el(
				"p",
				{},
				graph.about.running === false
					? "The program has ended: this was still in use at its end, reachable or lost."
					: "The program was running: what is in use is not lost yet. What grows says more.",
			),
			el(
				"p",
				{ class: "sum" },
				words.estimate(sum.value, measure.known ? sum.variance : 0, measure.unit) +
					" in " +
					words.count(list.length) +
					(list.length === 1 ? " stack" : " stacks"),
			),
		);
		for (const stack of list.slice(0, shown)) {
			const depth = graph.path(stack.row, path),
				frames = [];
			for (let i = 0; i < depth; i++)
				frames.push(
					frameLine(
						{
							name: graph.names[path[i]],
							label: graph.labels[path[i]],
							place: graph.place(path[i]),
							module: graph.modules[path[i]],
						},
						found && found.frames[path[i]],
					),
				);
			const ages = [...stack.ages]
				.map(([age, value]) => graph.ages[age] + " " + words.percent(value / stack.value))
				.join(", ");
			host.append(
				card(
					[
						[words.amount(stack.value, measure.unit), "big"],
						[words.doubt(stack.value, stack.samples, stack.variance, measure.known), "quiet"],
						[
							stack.objects
								? words.count(stack.objects) +
									" objects, " +
									words.bytes(stack.value / stack.objects) +
									" each"
								: "",
							"quiet",
						],
					],
					frames,
					ages && "age: " + ages,
				),
			);
		}
		if (list.length > shown)
			host.append(
				el(
					"button",
					{
						type: "button",
						class: "more",
						onclick: () => leaks(host, graph, number, mask, found, shown + 4 * SHOWN),
					},
					"Show more: " + (list.length - shown) + " stacks are left",
				),
			);
	}

	/* "12:23:41", with the date if that is another day's */
	function since(ns) {
		const isToday = new Date(ns / 1e6).toDateString() === new Date().toDateString();
		return isToday ? words.clock(ns / 1e6) : words.moment(ns / 1e6);
	}

	/* row: of /api/v1/growth, or its total */
	function rise(row) {
		return row.kind === "grows"
			? "since " + since(row.since_ns) + ", " + words.rate(row.per_hour)
			: "from " + since(row.since_ns) + " to " + since(row.until_ns) + ", no more since";
	}

	function rows(host, title, list) {
		if (!list.length) return;
		host.append(el("h3", {}, title));
		for (const row of list.slice(0, 4 * SHOWN))
			host.append(
				card(
					[
						["+" + words.bytes(row.change), "big"],
						[row.name, "mono"],
						[words.doubt(row.change, row.samples, row.change_error ** 2, true), "quiet"],
						[rise(row), ""],
						["now " + words.bytes(row.last), "quiet"],
						[row.is_caller ? "in several functions below " + row.name : "", "quiet"],
					],
					(row.stack || []).map(frame =>
						frameLine({
							name: frame.name,
							label: frame.label || frame.name,
							place: frame.file && frame.file + (frame.line ? ":" + frame.line : ""),
							module: frame.module,
						}),
					),
				),
			);
	}

	function sum(answer) {
		const { total } = answer,
			error = total.difference_error > 0 ? " \u00b1 " + words.bytes(total.difference_error) : "";
		return (
			"In all " +
			words.change(total.difference, "bytes") +
			error +
			" over " +
			answer.snapshots +
			" snapshots in " +
			words.duration(answer.series_ns / 1e6) +
			(answer.profiles > 1 ? ", of " + answer.profiles + " processes" : "") +
			"." +
			(answer.began_since > 0 ? " " + answer.began_since + " of them began in that time." : "")
		);
	}

	/* answer: of /api/v1/growth. Its sentence is at the top of the page too. */
	function growth(host, answer) {
		const said = answers.text(answer.answer.grows),
			unknown = "What grows is not known: these profiles are no series of one process or service.";
		host.replaceChildren(el("p", { class: said ? "sum" : "" }, said || unknown));
		if (!answer.total) return;
		host.append(el("p", { class: "quiet" }, sum(answer)));
		for (const [title, kind] of [
			["Growing", "grows"],
			["Rose, and stayed", "rose"],
		])
			rows(
				host,
				title,
				answer.rows.filter(row => row.kind === kind),
			);
	}

	return { leaks, growth, ofGraph };
})();
