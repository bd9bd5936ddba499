// Elements from data. Text stays text: nothing here, or anywhere on the page, makes markup of it.

const SVG = "http://www.w3.org/2000/svg";

// What turns the direction of a text or breaks its line, unseen: a name must not look like another.
const UNSEEN = /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** A text with what cannot be seen spelled out. */
export const plain = (text) => text.replace(UNSEEN, (letter) => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`);

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : plain(String(child)))));
  return element;
}

/** An HTML element. Properties are attributes; `onclick` and the like are listeners. */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** An SVG element. */
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function morph(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    const own = name === "open" || name === "tabindex";
    if (!own && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...next.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  update(old, [...next.childNodes]);
}

/**
 * Makes the children of an element equal to new ones and keeps what is the same, so that focus,
 * selection, scroll and opened details stay. Listeners of the new ones are not taken over: what
 * reacts stands outside of what is updated, or is a link.
 */
export function update(parent, children) {
  const wanted = children.flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(plain(String(child)))));
  const keyed = new Map([...parent.childNodes].map((node) => [keyOf(node), node]).filter(([key]) => key !== null));
  let at = parent.firstChild;
  for (const next of wanted) {
    const key = keyOf(next);
    const known = key === null ? null : keyed.get(key);
    if (known && known !== at && known.nodeName === next.nodeName) {
      parent.insertBefore(known, at);
      morph(known, next);
    } else if (at && sameKind(at, next)) {
      const after = at.nextSibling;
      morph(at, next);
      at = after;
    } else {
      parent.insertBefore(next, at);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** An address of this page. */
export function address(view, params) {
  const query = new URLSearchParams();
  if (view && view !== "overview") query.set("view", view);
  for (const [key, value] of Object.entries(params ?? {})) if (value) query.set(key, value);
  return `?${query}`;
}

/** `9` of `1764537600123456789`: nanoseconds as the milliseconds of a Date. */
export const millis = (nanos) => Number(BigInt(nanos) / 1000n) / 1000;

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

/** A time of day; the date too, where it is another day. */
export function clock(nanos) {
  if (!nanos || nanos === "0") return h("span", { class: "quiet" }, "no time");
  const date = new Date(millis(nanos));
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const today = new Date().toDateString() === date.toDateString();
  const iso = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  return h("time", { datetime: iso, title: iso }, today ? time : `${day} ${time}`);
}

/** A span of nanoseconds, given as a BigInt or a number. */
export function lasting(nanos) {
  const ms = Number(nanos) / 1e6;
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

export const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(part === whole ? 0 : 1)} %` : "–");

/** A word of a closed vocabulary, for reading. */
export const said = (word) => (word ?? "").replaceAll("_", " ");

/** What is too long for its place: the beginning, all of it on demand. */
export const short = (text, most = 12) => (text && text.length > most ? h("span", { title: text, class: "mono" }, `${text.slice(0, most)}…`) : h("span", { class: "mono" }, text ?? "–"));

/** `mcp-tool/1:sha256:0123…`: the digits that tell. */
export const digest = (text) => (text ? h("span", { class: "mono", title: text }, text.split(":").pop().slice(0, 12)) : h("span", { class: "quiet" }, "none"));
