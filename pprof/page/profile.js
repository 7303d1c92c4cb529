// SPDX-License-Identifier: Apache-2.0
"use strict";

/* One profile, or the difference of two: loads it, and shows it as a graph, a table, a tree or lists of
 * stacks. */
const profile = (() => {
	let state = address.read(); /* what is shown, see address.js */
	let graph = null; /* made of what `loaded` has */
	let loaded = "",
		process = null;
	let grown = null /* the answer about growth, or its promise; of whom: */,
		grownOf = "";
	let mask = null,
		found = null,
		measure = null; /* filters, search, and the numbers that they select */
	let measured = "",
		shapes = {}; /* the trees of `measure`: plain and inverted */
	let view = null; /* what the flame graph shows */
	let trouble = () => {};
	let openings = 0;

	/* ---- loading */

	/* Waits for a promise. If the user opens something else meanwhile, it never returns. */
	async function still(awaited) {
		const opening = openings,
			never = new Promise(() => {});
		try {
			const answer = await awaited;
			return opening === openings ? answer : never;
		} catch (error) {
			if (opening === openings) throw error;
			return never;
		}
	}

	const busy = is =>
		is ? $("profile").setAttribute("aria-busy", "true") : $("profile").removeAttribute("aria-busy");

	/* Whose growth it is: the id of a profile means its process. */
	const owner = () =>
		state.pid ? { pid: state.pid } : state.service ? { service: state.service } : { id: state.id };

	async function loadTimeline() {
		const answer = await still(source.json("timeline", owner()));
		process = answer.process || null;
		moments.load(answer);
	}

	/* Loads the other profiles to compare with. Nothing waits for them. */
	async function loadOthers() {
		const [all, profiles] = await still(
			Promise.all([source.json("processes"), source.json("profiles")]),
		);
		const isOurs = one => (state.pid ? String(one.pid) === state.pid : one.id === state.id);
		process = all.processes.find(isOurs) || process;
		moments.offer(all.processes, profiles.profiles, state.pid);
		moments.show(state.id, state.base);
		summary.show(graph, graph.kinds[kindNumber()], moments.find(state.id));
	}

	async function load() {
		const wanted = JSON.stringify([state.pid, state.service, state.id, state.base, state.lines]);
		busy(wanted !== loaded);
		if (wanted === loaded) return;
		const lines = state.lines ? 1 : "",
			layout = "columns";
		if (source.embedded) graph = new Graph(source.embedded);
		else {
			/* Several processes have no common time line. */
			await loadTimeline().catch(error => {
				if (!state.service) throw error;
				process = null;
				moments.clear();
			});
			const { service, base, id } = state;
			const data = base
				? source.json("diff", { layout, service, base, new: id || moments.current(), lines })
				: source.json("tree", { layout, ...(id ? { service, id } : owner()), lines });
			graph = new Graph(await still(data));
		}
		loaded = wanted;
		busy(false);
	}

	/* Of a process or service it is the same whichever of its moments is looked at. Nothing waits for it
	 * but its tab; where profiles do not say what is in use there is none. */
	function loadGrowth() {
		const whose = JSON.stringify([owner(), state.id ? process && process.pid : 0, moments.newest()]);
		if (whose !== grownOf) grown = null;
		grownOf = whose;
		return (grown ||= source.json("growth", owner()));
	}

	async function answerGrowth() {
		const answer = await still(loadGrowth().catch(() => null));
		showAnswer(answer && answer.answer);
	}

	/* The sentence about what is held is of the present moment; the sentence about growth is of all
	 * moments. */
	function showAnswer(growth) {
		answers.show(
			{
				...graph.answer,
				...(growth ? { grows: growth.grows, grows_function: growth.grows_function } : {}),
			},
			{
				sandwich: name => toSandwich(graph.frameNamed(name)),
				growth: source.embedded ? null : () => change({ tab: "growth" }, true),
			},
		);
	}

	/* ---- actions */

	/* A program may free all before it ends. Then its peak says more. */
	const LEFT_LEAST = 0.1; /* LEFT_PART of pprof/export/answer */

	function kindNumber() {
		const { kinds, about } = graph,
			asked = kinds.findIndex(kind => kind.name === state.type),
			peak = kinds.findIndex(kind => kind.name === "peak"),
			left = kinds[0].name === "inuse" && peak >= 0 ? kinds[0].all.value / kinds[peak].all.value : 1;
		if (asked >= 0) return asked;
		return left === 0 || (left < LEFT_LEAST && about.running === false) ? peak : 0;
	}

	function showNotice(kind) {
		const { kinds, about } = graph,
			isShown = ["flame", "table", "tree"].includes(state.tab),
			fellBack = isShown && kind.name === "peak" && state.type !== "peak" && kind !== kinds[0];
		$("notice").hidden = !fellBack;
		if (!fellBack) return;
		const left = kinds[0].all.value ? words.bytes(kinds[0].all.value) : "nothing";
		$("notice").replaceChildren(
			(about.running === false ? "At its end " + left + " was in use" : "Nothing is in use") +
				": this is " +
				(about.peak_is_snapshot ? "its largest snapshot. " : "its peak. "),
			el(
				"button",
				{ type: "button", class: "link", onclick: () => change({ type: "inuse" }) },
				about.running === false ? "show the end" : "show what is in use",
			),
		);
	}

	function actions() {
		const button = (text, onclick, title) => el("button", { type: "button", onclick, title }, text);
		const list = [button("copy address", copy, "of what is shown (C)")];
		/* There is no file of a service's moment. */
		if (!source.embedded && !graph.isDiff && !state.id.startsWith("at-"))
			list.unshift(
				button(
					"download",
					() => save().catch(trouble),
					"the profile, for go tool pprof and others",
				),
			);
		/* Without a token the server writes no snapshot. */
		if (source.hasToken() && state.pid && process && process.running)
			list.unshift(
				button("snapshot now", () => snapshot().catch(trouble), "writes a snapshot and shows it"),
			);
		$("actions").replaceChildren(...list);
	}

	function save() {
		const name = (graph.about.program || "heap") + ".pb.gz";
		return source.download(state.id ? { id: state.id } : owner(), name);
	}

	async function snapshot() {
		const before = moments.newest(),
			until = Date.now() + 10000;
		await still(source.snapshot(state.pid));
		say("A snapshot is being written.");
		do {
			await still(new Promise(resolve => setTimeout(resolve, 200)));
			await loadTimeline();
		} while (moments.newest() === before && Date.now() < until);
		loaded = "";
		change({ id: "", base: "", zoom: "" });
	}

	/* The address of these profiles, not of the newest ones. */
	function copy() {
		const pinned =
			source.embedded || state.service || (process && process.running)
				? state
				: { ...state, id: state.id || moments.newest() };
		const text = location.href.split("#")[0] + address.text(pinned);
		const show = () => prompt("Address", text);
		if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say("Copied."), show);
		else show();
	}

	/* ---- views */

	function showFound(shape) {
		$("found").textContent = "";
		if (!found) return;
		shape ||= makeShape(false);
		const sum = shape.found(found.frames),
			whole = shape.value[0],
			{ unit, known } = measure;
		let text = words.estimate(sum.value, known ? sum.variance : 0, unit);
		if (whole > 0) text += ", " + words.percent(sum.value / whole);
		if (graph.isDiff) {
			text = words.change(sum.value - sum.base, unit);
			if (sum.variance > 0) text += " \u00b1 " + words.amount(Math.sqrt(sum.variance), unit);
		}
		$("found").textContent = (found.wrong ? "not an expression, as text: " : "") + "found " + text;
	}

	/* Trees are made once for the same numbers, whichever view shows them. */
	function makeShape(inverted = state.inverted === "1") {
		const way = inverted ? "inverted" : "plain";
		return (shapes[way] ||= Shape[way](graph, measure));
	}

	/* The numbers that the filters select. */
	function takeMeasure() {
		const number = text => (text === "" ? -1 : Number(text));
		const { type, wide, only, without, thread, age, starts } = state;
		const wanted = JSON.stringify([loaded, type, wide, only, without, thread, age, starts]);
		if (wanted === measured) return;
		graph.showStarts(starts === "1");
		mask = graph.select({ only, without, thread: number(thread), age: number(age) });
		measure = graph.measure(kindNumber(), mask, wide);
		measured = wanted;
		shapes = {};
	}

	/* Rows from top to bottom. Among a function's callers the outermost is at the top. */
	function flameRows() {
		const frame = state.sandwich ? graph.frameNamed(state.sandwich) : -1;
		const rows = shape =>
			shape.levels.map((nodes, i) => ({
				shape,
				nodes,
				starts: shape.starts[i],
				ends: shape.ends[i],
			}));
		if (frame < 0) {
			const shape = makeShape();
			return { rows: rows(shape), shape, frame, above: 0 };
		}
		const callees = Shape.callees(graph, measure, frame);
		const up = rows(Shape.callers(graph, measure, frame))
			.slice(1)
			.reverse();
		return { rows: [...up, ...rows(callees)], shape: callees, frame, above: up.length };
	}

	function showCrumbs() {
		const line = [],
			zoom = Number(state.zoom) || 0;
		const link = (text, part) =>
			el("button", { type: "button", class: "link", onclick: () => change(part, true) }, text);
		if (view.frame >= 0)
			line.push(
				"callers above, callees below: ",
				el("b", { class: "mono" }, graph.labels[view.frame]),
				"  ",
				link("back to the whole", { sandwich: "" }),
			);
		else if (zoom > 0 && zoom < view.shape.count)
			for (const node of view.shape.pathTo(zoom))
				line.push(
					node ? " \u203a " : "",
					link(view.shape.label(node), { zoom: node ? String(node) : "" }),
				);
		$("crumbs").hidden = !line.length;
		$("crumbs").replaceChildren(...line);
	}

	function showFlame() {
		view = flameRows();
		showCrumbs();
		const high = Math.max(260, innerHeight - 190);
		$("nothing").hidden = view.shape.width[0] > 0;
		$("nothing").textContent = words.nothing(measure, graph.about);
		$("graph").hidden = !$("nothing").hidden;
		$("graph").style.height = Math.min(view.rows.length * Flame.ROW + 2, high) + "px";
		const look = { dark: document.documentElement.dataset.theme === "dark", by: state.by };
		flame.show(view.rows, look, found && found.frames, view.frame >= 0 ? 0 : Number(state.zoom) || 0);
		if (view.above)
			$("graph").scrollTop = Math.max(0, view.above * Flame.ROW - $("graph").clientHeight / 2);
		showFound(view.shape);
		showChosen(null);
	}

	function showChosen(shape, node) {
		$("chosen").hidden = !shape;
		if (!shape) return;
		const frame = shape.frameOf(node);
		const button = (text, part, keep) =>
			el("button", { type: "button", onclick: () => change(part, keep) }, text);
		say(facts.line(shape, node));
		$("chosen").replaceChildren(
			el("b", { class: "mono" }, shape.name(node)),
			facts.element(shape, node),
		);
		if (frame < 0) return;
		const exactly = "^" + graph.names[frame].replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
		$("chosen").append(
			el(
				"p",
				{ class: "buttons" },
				button("callers and callees", { sandwich: graph.names[frame], zoom: "" }, true),
				button("only stacks with it", { only: exactly, zoom: "" }, true),
				button("find all of it", { search: exactly }),
			),
		);
	}

	function toSandwich(frame) {
		if (frame >= 0) change({ tab: "flame", sandwich: graph.names[frame], zoom: "" }, true);
	}

	function showTable() {
		const key = state.sort.replace(/-up$/, "");
		functions.show(
			$("table"),
			graph,
			measure,
			found,
			key ? { key, down: key === state.sort } : null,
			{
				sandwich: toSandwich,
				sorted: by => {
					state.sort = by.key + (by.down ? "" : "-up");
					address.write(state);
				},
			},
		);
		showFound();
	}

	function showTree() {
		const shape = makeShape();
		outline.show(shape, found);
		showFound(shape);
	}

	function showLeaks() {
		const number = Math.max(
			0,
			graph.kinds.findIndex(kind => kind.name === "inuse"),
		);
		stacks.leaks($("leaks"), graph, number, mask, found);
		showFound();
	}

	async function showGrowth() {
		const answer = await still(loadGrowth());
		showAnswer(answer.answer);
		stacks.growth($("growth"), answer);
	}

	async function showView() {
		if (state.tab !== "flame") $("crumbs").hidden = true;
		await {
			flame: showFlame,
			table: showTable,
			tree: showTree,
			leaks: showLeaks,
			growth: showGrowth,
		}[state.tab]();
	}

	async function draw() {
		const kind = graph.kinds[kindNumber()];
		found = graph.match(state.search);
		takeMeasure();
		tools.show(state, graph, kind, change);
		summary.show(graph, kind, moments.find(state.id));
		showNotice(kind);
		await showView();
	}

	/* ---- changes */

	/* Answers that are still on their way are not wanted any more. */
	function leave() {
		openings++;
		busy(false);
	}

	async function open(next, report) {
		leave();
		state = next;
		trouble = report;
		await load();
		summary.heading(graph);
		actions();
		moments.show(state.id, state.base);
		showAnswer(null);
		await draw();
		if (source.embedded) return;
		if (!graph.isDiff) answerGrowth().catch(trouble);
		if (!state.service) loadOthers().catch(trouble);
	}

	/* keep: the browser's Back returns from this state. */
	async function change(part, keep) {
		const reload = ["id", "base", "lines"].some(name => name in part && part[name] !== state[name]);
		state = { ...state, ...part };
		address.write(state, keep);
		try {
			await (reload || !graph || !loaded ? open(state, trouble) : draw());
		} catch (error) {
			trouble(error);
		}
	}

	/* While the user types, the graph stays, and only the found frames change. */
	function search() {
		state.search = $("search").value;
		address.write(state);
		found = graph.match(state.search);
		$("search").setAttribute("aria-invalid", String(Boolean(found && found.wrong)));
		if (state.tab !== "flame") return showView().catch(trouble);
		flame.search(found && found.frames);
		showFound(view.shape);
	}

	function whole() {
		for (const name of ["search", "only", "without"]) $(name).value = "";
		change({ search: "", zoom: "", sandwich: "", only: "", without: "", thread: "", age: "" });
	}

	function sandwichCurrent() {
		const at = flame.current,
			shape = at && flame.rows[at.row] ? flame.rows[at.row].shape : null;
		if (shape && shape.frameOf(at.node) >= 0) toSandwich(shape.frameOf(at.node));
	}

	const flame = new Flame($("graph"), {
		zoom: node => {
			state.zoom = node ? String(node) : "";
			address.write(state, true);
			showCrumbs();
			flame.zoom(node);
		},
		sandwich: toSandwich,
		focus: showChosen,
		tip: (shape, node, x, y) => tip.show(shape, node, x, y),
	});
	const outline = new Outline($("tree"), { sandwich: toSandwich });
	const moments = new Moments(({ id, base }) => change({ id, base, zoom: "" }, true));
	tools.listen({ change, search, whole });

	return {
		open,
		leave,
		change,
		whole,
		copy,
		flame,
		sandwichCurrent,
		nextType: () => change({ type: graph.kinds[(kindNumber() + 1) % graph.kinds.length].name }),
		redraw: () => graph && draw().catch(trouble),
	};
})();
