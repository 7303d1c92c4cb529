// SPDX-License-Identifier: Apache-2.0
"use strict";

/*
 * Colours of frames. A colour never says anything alone: frames carry their names, changes carry a sign and a
 * pattern too.
 */
const colour = (() => {
	/* As enum frame_role of pprof/analysis/frames.h. */
	const ROLE = {
		OWN: 0,
		SCRIPT: 1,
		SCRIPT_LIBRARY: 2,
		LIBRARY: 3,
		ALLOCATOR: 4,
		ALLOCATES: 5,
		UNNAMED: 6,
		UNNAMED_OWN: 7,
	};

	/* Hues from red to yellow, far enough apart to look different. */
	const WARM = [8, 17, 25, 33, 41, 50];

	function hash(text) {
		let value = 2166136261;
		for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
		value ^= value >>> 15;
		return Math.imul(value, 0x2c1b3c6d) >>> 8;
	}

	const hsl = (hue, saturation, lightness) =>
		"hsl(" + hue.toFixed(0) + " " + saturation.toFixed(0) + "% " + lightness.toFixed(0) + "%)";

	/* One hue for each program or library, from red to yellow; its functions differ in lightness. What is
	 * not the user's own code is paler. */
	function byModule(graph, dark) {
		return graph.names.map((name, frame) => {
			const role = graph.roles[frame],
				shift = (hash(name) % 11) - 5;
			const hue = WARM[hash(graph.modules[frame] || graph.files[frame]) % WARM.length];
			if (role === ROLE.UNNAMED || name[0] === "[") return hsl(40, 6, (dark ? 58 : 80) + shift / 2);
			if (role === ROLE.ALLOCATOR) return hsl(48, 30, (dark ? 64 : 84) + shift / 2);
			if (role === ROLE.LIBRARY || role === ROLE.SCRIPT_LIBRARY)
				return hsl(hue, 42, (dark ? 63 : 77) + shift);
			return hsl(hue, 84, (dark ? 63 : 69) + shift);
		});
	}

	/* The more bytes a frame allocates itself, the deeper its colour. */
	function byAllocation(shape, node, dark) {
		const share =
			shape.value[node] > 0 ? Math.max(0, Math.min(1, shape.own[node] / shape.value[node])) : 0;
		return hsl(42 - 30 * share, 40 + 48 * share, (dark ? 68 : 86) - 24 * share);
	}

	/* Red grows and blue shrinks. The colour is pale if the change is small against the frame. Grey is
	 * chance. */
	function byChange(found, shape, node, dark) {
		if (!found.sure) return dark ? "hsl(40 4% 46%)" : "hsl(40 8% 84%)";
		const most = Math.max(Math.abs(shape.base[node]), Math.abs(shape.value[node]));
		const share = most > 0 ? Math.min(1, Math.abs(found.change) / most) : 0;
		return found.change > 0
			? hsl(12, 50 + 38 * share, (dark ? 72 : 80) - 18 * share)
			: hsl(212, 45 + 35 * share, (dark ? 74 : 82) - 16 * share);
	}

	/* What a frame has besides its colour, so that growth and shrinking differ without colour too. */
	function pattern(context, kind) {
		const tile = document.createElement("canvas"),
			at = tile.getContext("2d");
		tile.width = tile.height = 6;
		at.strokeStyle = "rgb(0 0 0 / 26%)";
		at.lineWidth = 1;
		at.beginPath();
		const [x0, x1] = kind === "less" || kind === "vanished" ? [-1, 7] : [7, -1];
		for (const shift of [-6, 0, 6]) {
			at.moveTo(x0 + shift, -1);
			at.lineTo(x1 + shift, 7);
		}
		at.stroke();
		return context.createPattern(tile, "repeat");
	}

	return { byModule, byAllocation, byChange, pattern };
})();
