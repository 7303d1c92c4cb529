// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * The part of the address behind '#' says what is shown: so a user can send a view to somebody, and the
 * browser's Back works. Defaults are left out.
 */
const address = (() => {
	const USUAL = {
		pid: "",
		service: "",
		id: "",
		base: "",
		tab: "flame",
		type: "",
		search: "",
		inverted: "",
		sandwich: "",
		zoom: "",
		wide: "new",
		by: "module",
		lines: "",
		only: "",
		without: "",
		thread: "",
		age: "",
		starts: "",
		sort: "",
	};

	function read() {
		const given = new URLSearchParams(location.hash.slice(1)),
			state = {};
		for (const [name, usual] of Object.entries(USUAL)) state[name] = given.get(name) ?? usual;
		return state;
	}

	function text(state) {
		const query = new URLSearchParams();
		for (const [name, usual] of Object.entries(USUAL))
			if (state[name] !== usual && state[name] !== undefined) query.set(name, state[name]);
		return "#" + query;
	}

	/* keep: Back leads to what was before. */
	function write(state, keep) {
		if (text(state) === (location.hash || "#")) return;
		history[keep ? "pushState" : "replaceState"](null, "", text(state));
	}

	return { USUAL, read, text, write };
})();
