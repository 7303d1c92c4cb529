// SPDX-License-Identifier: Apache-2.0
"use strict";

const $ = id => document.getElementById(id);

/* An element with properties and children: el("td", { class: "number" }, "12 B"). What begins with "on" is a
 * listener; names from profiles are text, never markup. */
function el(tag, properties, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties || {})) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
		else element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
	return element;
}

/* Names of what is counted, for people. */
const kindTitle = name =>
	({
		inuse: "In use",
		peak: "In use at the peak",
		"inuse-objects": "Objects in use",
		alloc: "Allocated",
		objects: "Allocations",
		freed: "Freed",
		temporary: "Temporary",
	})[name] || name;

/* Shows a line, and lets screen readers say it. */
function say(text) {
	$("said").textContent = text;
}
