// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * The answer on top: what is held and by whom, what grows since when, what is not seen. The sentences are
 * made by pprof/export/answer, the same for report, JSON and page; here their functions become links.
 *
 *	{ held, grows, unseen, held_function, grows_function }
 */
const answers = (() => {
	/* A terminal writes +- as two characters; the page has a sign for it. */
	const text = sentence => (sentence || "").replaceAll("+-", "\u00b1");

	/* The sentence, with the function's name in it as a link. */
	function sentence(whole, name, open, title) {
		const at = name ? whole.indexOf(name) : -1;
		if (at < 0) return [text(whole)];
		return [
			text(whole.slice(0, at)),
			el("button", { type: "button", class: "link mono", title, onclick: open }, name),
			text(whole.slice(at + name.length)),
		];
	}

	/* actions: sandwich(name), growth() or null */
	function show(answer, actions) {
		const { held, grows, unseen, held_function, grows_function } = answer || {};
		const lines = [
			held &&
				el(
					"p",
					{ class: "held" },
					...sentence(
						held,
						held_function,
						() => actions.sandwich(held_function),
						"its callers and callees",
					),
				),
			grows &&
				el(
					"p",
					{ class: "grows" },
					...sentence(
						grows,
						grows_function,
						() => (actions.growth || actions.sandwich)(grows_function),
						actions.growth ? "its growth" : "its callers and callees",
					),
				),
			unseen && el("p", { class: "quiet" }, text(unseen)),
		].filter(Boolean);
		$("answer").hidden = !lines.length;
		$("answer").replaceChildren(...lines);
	}

	return { show, text };
})();
