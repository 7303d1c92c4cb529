// SPDX-License-Identifier: Apache-2.0
"use strict";

/* The tabs and the tools above a profile. They show the state of the view, and ask for another state. */
const tools = (() => {
	const TABS = [
		["flame", "Flame graph"],
		["table", "Table"],
		["tree", "Tree"],
		["leaks", "In use, by stack"],
		["growth", "Growth"],
	];

	/* A difference has no leaks, and one profile alone no growth. What is in use is leaked only when the
	 * program has ended. */
	function tabsOf(graph) {
		return TABS.filter(([name]) =>
			name === "leaks"
				? !graph.isDiff
				: name === "growth"
					? !graph.isDiff && !source.embedded
					: true,
		).map(([name, title]) => [
			name,
			name === "leaks" && graph.about.running === false ? "Leaks" : title,
		]);
	}

	function showTabs(state, graph, change) {
		const tabs = tabsOf(graph),
			at = tabs.findIndex(([name]) => name === state.tab);
		const turn = event => {
			const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
			if (!way) return;
			const [next] = tabs[(at + way + tabs.length) % tabs.length];
			change({ tab: next }, true).then(() => $("tab-" + next).focus());
			event.preventDefault();
		};
		const button = ([name, title], i) => {
			const properties = { type: "button", role: "tab", id: "tab-" + name, "aria-controls": name };
			return el(
				"button",
				{
					...properties,
					"aria-selected": String(i === at),
					tabindex: i === at ? 0 : -1,
					onclick: () => change({ tab: name }, true),
					onkeydown: turn,
				},
				title,
			);
		};
		$("tabs").replaceChildren(...tabs.map(button));
		for (const [name] of TABS) $(name).hidden = name !== state.tab;
	}

	function fill(id, value, options) {
		$(id).replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
		$(id).value = value;
	}

	function showGroups(id, value, names) {
		const groups = names.map((name, i) => [String(i), name]).filter(([, name]) => name);
		fill(id, value, [["", "all"], ...groups]);
		$(id + "-field").hidden = !groups.length;
	}

	function openFilters(open) {
		$("filters").hidden = !open;
		$("more-filters").setAttribute("aria-expanded", String(open));
	}

	function show(state, graph, kind, change) {
		if (!tabsOf(graph).some(([name]) => name === state.tab)) state.tab = "flame";
		showTabs(state, graph, change);
		fill(
			"type",
			kind.name,
			graph.kinds.map(kind => [kind.name, kindTitle(kind.name) + " (" + kind.unit + ")"]),
		);
		for (const name of ["search", "only", "without"])
			if ($(name) !== document.activeElement) $(name).value = state[name];
		$("inverted").checked = state.inverted === "1";
		$("lines").checked = state.lines === "1";
		$("starts").checked = state.starts === "1";
		$("starts-field").hidden = !graph.hasStarts;
		$("by").value = state.by;
		$("wide").value = state.wide;
		showGroups("thread", state.thread, graph.threads);
		showGroups("age", state.age, graph.ages);
		if (state.only || state.without || state.thread || state.age || state.starts) openFilters(true);
		const flame = state.tab === "flame",
			is = (selector, shown) =>
				document.querySelectorAll(selector).forEach(element => {
					element.hidden = !shown;
				});
		is(".only-flame", flame || state.tab === "tree");
		is(".only-diff", graph.isDiff && flame);
		is(".only-served", !source.embedded);
		is("#tools", state.tab !== "growth");
		$("by-field").hidden = graph.isDiff || !flame;
	}

	/* The actions of the tools: change(part of the state, keep), search(), whole(). */
	function listen({ change, search, whole }) {
		for (const name of ["wide", "by", "thread", "age"])
			$(name).addEventListener("change", () => change({ [name]: $(name).value, zoom: "" }));
		$("type").addEventListener("change", () => change({ type: $("type").value }));
		$("inverted").addEventListener("change", () =>
			change({ inverted: $("inverted").checked ? "1" : "", zoom: "" }),
		);
		$("lines").addEventListener("change", () =>
			change({ lines: $("lines").checked ? "1" : "", zoom: "", sandwich: "" }),
		);
		$("starts").addEventListener("change", () =>
			change({ starts: $("starts").checked ? "1" : "", zoom: "" }),
		);
		$("more-filters").addEventListener("click", () => openFilters($("filters").hidden));
		$("whole").addEventListener("click", whole);
		let typing = 0;
		for (const name of ["search", "only", "without"])
			$(name).addEventListener("input", () => {
				clearTimeout(typing);
				typing =
					name === "search"
						? setTimeout(search, 30)
						: setTimeout(() => change({ [name]: $(name).value, zoom: "" }), 200);
			});
	}

	return { show, listen };
})();
