// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * The functions of a profile as they are shown. What has one label is one function, as in `heaptap report`:
 * what V8 compiled twice, and the instances of a template. Where source lines are told apart, so are these.
 *
 *	names		in full; of several with one label the label
 *	versions	all full names of a function
 *	of		our number for each frame of the profile
 */
class Frames {
	constructor(data) {
		const frames = data.frames,
			numbers = new Map();
		Object.assign(this, { names: [], labels: [], files: [], modules: [], roles: [], versions: [] });
		this.lines = frames.line ? [] : null;
		this.of = Int32Array.from(frames.name, (name, i) => {
			const label = frames.label[i] || name,
				key = frames.line ? [label, frames.file[i], frames.line[i]].join("\0") : label;
			let number = numbers.get(key);
			if (number === undefined) {
				number = this.names.length;
				numbers.set(key, number);
				this.names.push(name);
				this.labels.push(label);
				this.files.push(data.files[frames.file[i]]);
				this.modules.push(data.modules[frames.module[i]]);
				this.roles.push(frames.role[i]);
				this.versions.push([]);
				this.lines?.push(frames.line[i]);
			}
			this.versions[number].push(name);
			return number;
		});
		this.versions.forEach((versions, i) => {
			if (new Set(versions).size > 1) this.names[i] = this.labels[i];
		});
	}
}

/*
 * The frames that start a program or a thread: every stack has them, and they say nothing. That is _start and
 * its like with what they are called by, and behind them the library's functions down to `main`, or to the
 * function of the thread.
 */
const starts = (() => {
	const LIBRARY = 3,
		UNNAMED = 6; /* enum frame_role */
	const FILES = /^(libc[.-]|libpthread|libstdc\+\+|libc\+\+|ld-)/;
	const NAMES =
		/^_*(start|libc_start_\w+|libc_start_main_stage2|start_thread|clone3?|dl_start\w*|dl_init)(@.*)?$/;

	/* For each node of the tree, parents first: are this node and all nodes above it such starts? */
	function find(frame, parent, frames) {
		const isStart = frames.names.map(
				(name, i) => frames.roles[i] === LIBRARY && NAMES.test(name),
			),
			isOfLibrary = frames.roles.map(
				(role, i) =>
					role === LIBRARY || (role === UNNAMED && FILES.test(words.file(frames.modules[i]))),
			),
			BEFORE = 1,
			WITHIN = 2,
			state = new Uint8Array(parent.length);
		state[0] = BEFORE;
		for (let node = 1; node < parent.length; node++) {
			const above = state[parent[node]];
			if (above && isStart[frame[node]]) state[node] = WITHIN;
			else if (above === WITHIN && isOfLibrary[frame[node]]) state[node] = WITHIN;
			else if (above === BEFORE && frames.roles[frame[node]] === UNNAMED) state[node] = BEFORE;
		}
		return Uint8Array.from(state, (at, node) => (node && at === WITHIN ? 1 : 0));
	}

	return { find };
})();
