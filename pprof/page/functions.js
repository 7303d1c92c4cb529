// SPDX-License-Identifier: Apache-2.0
"use strict";

/* The table of functions: what each holds itself and with everything it called, or by how much that
 * changed. It is the graph for who cannot see one: the same numbers, with every error. */
const functions = (() => {
	function rowsOf(graph, measure, found) {
		const { flat, cum } = graph.functions(measure),
			rows = [];
		for (let frame = 0; frame < graph.names.length; frame++) {
			if (!cum.value[frame] && !cum.base[frame]) continue;
			if (found && !found.frames[frame]) continue;
			const pick = sums => ({
				value: sums.value[frame],
				base: sums.base[frame],
				variance: sums.variance[frame],
				samples: sums.samples[frame],
			});
			rows.push({ number: frame, frame, flat: pick(flat), cum: pick(cum) });
		}
		return rows;
	}

	const few = (measure, sum, text) =>
		measure.known && words.isFew(sum.samples, sum.variance)
			? el("span", { class: "few" }, text)
			: text;

	/* What the function called, and who called it: as in `heaptap report`. */
	function nameCell(graph, callers, row, open) {
		const { frame } = row,
			around = callers.text(frame),
			about = [
				graph.names[frame],
				graph.place(frame),
				graph.modules[frame],
				"show its callers and callees",
			];
		return el(
			"span",
			{ class: "name" },
			el(
				"button",
				{
					type: "button",
					class: "link mono",
					title: about.filter(Boolean).join("\n"),
					onclick: () => open(frame),
				},
				graph.labels[frame],
			),
			graph.lines && graph.place(frame)
				? el("span", { class: "quiet place" }, words.file(graph.place(frame)))
				: "",
			around ? el("span", { class: "mono quiet around" }, around) : "",
		);
	}

	function single(graph, measure, whole, callers, open) {
		const pair = (key, title, hint, extra) => [
			{
				key,
				title,
				number: true,
				hint,
				of: row => row[key].value,
				class: extra,
				cell: row => few(measure, row[key], words.amount(row[key].value, measure.unit)),
			},
			{
				key: key + "_error",
				title: "error",
				number: true,
				hint: "one standard error",
				class: extra,
				of: row => row[key].variance,
				cell: row =>
					few(
						measure,
						row[key],
						words.doubt(row[key].value, row[key].samples, row[key].variance, measure.known),
					),
			},
		];
		return [
			...pair(
				"flat",
				"flat",
				"of stacks that end in this function, or in a library that it called",
				"",
			),
			{
				key: "share",
				title: "share",
				number: true,
				hint: "of all",
				of: row => row.flat.value,
				cell: row => (whole > 0 && row.flat.value ? words.percent(row.flat.value / whole) : ""),
			},
			...pair("cum", "cum", "with everything that it called", "second"),
			{
				key: "name",
				name: true,
				title: "function > callee < callers",
				number: false,
				of: row => graph.labels[row.frame],
				cell: row => nameCell(graph, callers, row, open),
			},
		];
	}

	/* What to say of a function that has not changed itself: the change below it. */
	function below(measure, cum) {
		const found = verdict.of(cum.base, cum.value, cum.variance, measure.known);
		return found.sure
			? (found.change > 0 ? "\u25b2 grew" : "\u25bc shrank") + " below it"
			: "unchanged itself";
	}

	function mark(graph, measure, sum, cum) {
		const found = verdict.of(sum.base, sum.value, sum.variance, measure.known);
		if (found.mark === "same") return el("span", { class: "verdict chance" }, below(measure, cum));
		return el(
			"span",
			{
				class: "verdict " + (found.sure ? (found.change > 0 ? "more" : "less") : "chance"),
			},
			found.sure
				? {
						new: "\u2217 new",
						vanished: "\u2217 gone",
						more: "\u25b2 grew",
						less: "\u25bc shrank",
						same: "",
					}[found.mark]
				: found.mark === "new"
					? "new, chance"
					: found.mark === "vanished"
						? "gone, chance"
						: "chance",
		);
	}

	function change(graph, measure, whole, callers, open) {
		const of = key => row => row[key].value - row[key].base;
		const plain = (key, side, title) => ({
			key: key + side,
			title,
			number: true,
			of: row => row[key][side],
			class: "second",
			cell: row => words.amount(row[key][side], measure.unit),
		});
		return [
			{
				key: "flat",
				title: "change",
				number: true,
				hint: "of stacks that end in this function, or in a library that it called",
				of: row => Math.abs(of("flat")(row)),
				cell: row => words.change(of("flat")(row), measure.unit),
			},
			{
				key: "flat_error",
				title: "\u00b1",
				number: true,
				hint: "one standard error of the change",
				of: row => row.flat.variance,
				cell: row =>
					row.flat.variance > 0 ? words.amount(Math.sqrt(row.flat.variance), measure.unit) : "",
			},
			{
				key: "verdict",
				title: "verdict",
				number: false,
				hint: "more than two standard errors?",
				of: row =>
					verdict.of(row.flat.base, row.flat.value, row.flat.variance, measure.known).sure
						? "0"
						: "1",
				cell: row => mark(graph, measure, row.flat, row.cum),
			},
			plain("flat", "base", "base"),
			plain("flat", "value", "new"),
			{
				key: "cum",
				title: "cum change",
				number: true,
				hint: "with everything that it called",
				class: "second",
				of: row => Math.abs(of("cum")(row)),
				cell: row => words.change(of("cum")(row), measure.unit),
			},
			{
				key: "cum_error",
				title: "\u00b1",
				number: true,
				hint: "one standard error",
				of: row => row.cum.variance,
				class: "second",
				cell: row =>
					row.cum.variance > 0 ? words.amount(Math.sqrt(row.cum.variance), measure.unit) : "",
			},
			{
				key: "name",
				name: true,
				title: "function > callee < callers",
				number: false,
				of: row => graph.labels[row.frame],
				cell: row => nameCell(graph, callers, row, open),
			},
		];
	}

	const isThere = sum => sum.value !== 0 || sum.base !== 0,
		hasChanged = sum => sum.value !== sum.base;

	/* Functions that hold nothing themselves are shown only if the user searches, or sorts by what is
	 * held below them. */
	function show(host, graph, measure, found, sort, actions) {
		const all = rowsOf(graph, measure, found),
			rows = graph.isDiff ? all.filter(row => hasChanged(row.flat) || hasChanged(row.cum)) : all,
			whole = measure.value.reduce((sum, value) => sum + value, 0);
		const isSure = sum => verdict.of(sum.base, sum.value, sum.variance, measure.known).sure;
		const isOwn = row => (graph.isDiff ? hasChanged : isThere)(row.flat);
		if (graph.isDiff)
			for (const row of rows) row.class = isSure(row.flat) || isSure(row.cum) ? "" : "within";
		const table = new Table(host, {
			caption: graph.isDiff
				? "Functions by change; grey is within two standard errors."
				: "Functions; one standard error.",
			columns: (graph.isDiff ? change : single)(
				graph,
				measure,
				whole,
				new Callers(graph, measure),
				actions.sandwich,
			),
			sort: sort || { key: "flat", down: true },
			open: row => actions.sandwich(row.frame),
			sorted: actions.sorted,
			keep: (row, by) => found || by.key.startsWith("cum") || isOwn(row),
			left: count =>
				words.count(count) +
				" that " +
				(graph.isDiff ? "changed only below them" : "hold nothing themselves") +
				" are not shown: sort by cum, or search.",
		});
		const notes = found ? ["Only those that the search finds."] : [];
		if (rows.length < all.length)
			notes.push(words.count(all.length - rows.length) + " functions have not changed.");
		table.show(rows, notes.join(" "));
	}

	return { show, rowsOf };
})();
