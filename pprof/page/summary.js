// SPDX-License-Identifier: Apache-2.0
"use strict";

/* What a profile is of, and its main numbers. For a difference: what changed in all, and what the colours
 * mean. */
const summary = (() => {
	const TITLES = { peak: "At the peak", "inuse-objects": "Objects" };

	function tile(title, text, doubt, hint) {
		return el(
			"div",
			{ class: "tile", title: hint },
			el("span", { class: "quiet" }, title),
			el("b", {}, text),
			el("span", { class: "doubt" }, doubt || ""),
		);
	}

	/* An item of words, without a number. */
	function note(title, text) {
		return el("div", { class: "tile" }, el("span", { class: "quiet" }, title), el("span", {}, text));
	}

	/* Without samples there is no measured zero. */
	function kindTile(kind, about) {
		const { value, samples, error } = kind.all;
		if (value === 0 && kind.unit === "bytes" && kind.known && about.period > 1)
			return tile(kindTitle(kind.name), "nothing sampled");
		const doubt = words.doubt(value, samples, (error || 0) ** 2, kind.known);
		const plain =
			error > 0 && doubt.startsWith("\u00b1") ? words.amount(error, kind.unit) : "";
		return tile(
			TITLES[kind.name] || kindTitle(kind.name),
			words.amount(value, kind.unit),
			/sample/.test(doubt) ? "(" + doubt + ")" : doubt,
			plain && "one standard error: " + plain,
		);
	}

	/* "949 taken, 0 lost stacks, ...": shows the number and the losses, and opens the rest. */
	function samplesTile(text) {
		const found = /^(\d+) taken, (\d+) lost/.exec(text);
		if (!found) return note("Samples", text);
		const lost = found[2] === "0" ? "" : words.count(Number(found[2])) + " without their stack";
		return el(
			"details",
			{ class: "tile" },
			el(
				"summary",
				{},
				el("span", { class: "quiet", "aria-hidden": "true" }, "\u25b8"),
				el("span", { class: "quiet" }, "Samples"),
				el("b", {}, words.count(Number(found[1]))),
				lost ? el("span", { class: "doubt" }, lost) : "",
			),
			el("span", { class: "quiet" }, text),
		);
	}

	/* point: of the time line; null if there is none */
	function ofProfile(graph, point) {
		const tiles = ["inuse", "peak", "inuse-objects", "alloc", "objects"]
			.map(name => graph.kinds.find(kind => kind.name === name))
			.filter(kind => kind && kind.all)
			.map(kind => kindTile(kind, graph.about));
		if (point && point.rss > 0) {
			const part = words.percent(point.inuse / point.rss) + " of it in use";
			tiles.splice(1, 0, tile("RSS", words.bytes(point.rss), "", "resident memory, " + part));
		}
		if (graph.about.samples) tiles.push(samplesTile(graph.about.samples));
		return tiles;
	}

	function ofChange(graph, kind) {
		const { base, value, error } = kind.all;
		const of = verdict.of(base, value, (error || 0) ** 2, kind.known);
		return [
			tile("Base", words.amount(base, kind.unit)),
			tile("New", words.amount(value, kind.unit)),
			tile(
				"Change",
				words.change(of.change, kind.unit),
				error > 0 ? "\u00b1 " + words.amount(error, kind.unit) : "",
			),
			tile(
				"Verdict",
				verdict.text(of, kind.known),
				graph.sameProcess
					? (graph.about.pid ? "one process" : "the same processes") +
							": samples in both cancel out"
					: "two runs: what they did differently shows too",
			),
		];
	}

	/* That this page asked for it, "now", says nothing later on. */
	function when(time_ns, cause) {
		return [
			time_ns > 0 ? words.moment(time_ns / 1e6) : "",
			cause && !cause.startsWith("now,") ? cause : "",
		].filter(Boolean);
	}

	function heading(graph) {
		const { about } = graph,
			parts = [];
		if (about.pid) parts.push("pid " + about.pid);
		if (about.host) parts.push(about.host);
		parts.push(...when(about.time_ns, about.cause));
		if (about.base_time_ns !== undefined) {
			const base = when(about.base_time_ns, about.base_cause);
			if (about.base_pid && about.base_pid !== about.pid) base.unshift("pid " + about.base_pid);
			if (about.base_program !== graph.title) base.unshift(about.base_program);
			parts.push("compared with " + base.join(", "));
		}
		$("title").textContent = graph.title || "heap profile";
		$("subtitle").textContent = parts.join(" \u00b7 ");
		if (about.upper_limits)
			$("subtitle").append(
				el("br"),
				"Errors are upper limits: the profiles do not say which inherited blocks are the same.",
			);
		if (about.not_seen && !(graph.answer && graph.answer.unseen))
			$("subtitle").append(el("br"), "Not seen: " + about.not_seen);
		document.title = (graph.title || "heap profile") + " \u2014 heaptap";
	}

	function legend(kind) {
		const key = (name, text) => el("span", {}, el("i", { class: "key " + name }), " " + text);
		const grey = kind.known
			? "grey: within two standard errors, which chance makes"
			: "grey: cannot be told from chance, there is no sampling period";
		return [
			key("grown", "+ grew"),
			key("shrunk", "\u2212 shrank"),
			key("new", "new"),
			key("gone", "gone"),
			key("chance", grey),
		];
	}

	/* kind: the kind that is shown */
	function show(graph, kind, point) {
		$("tiles").replaceChildren(
			...(graph.isDiff ? ofChange(graph, kind) : ofProfile(graph, point)),
		);
		$("legend").hidden = !graph.isDiff;
		$("legend").replaceChildren(...(graph.isDiff ? legend(kind) : []));
	}

	return { heading, show };
})();
