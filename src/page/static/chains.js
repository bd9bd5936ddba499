// Chains, newest first. What is looked for stands in the address. Live without jumping: while
// somebody reads, new lines wait behind a button, and those in sight change in place.

import { ask } from "./api.js";
import { address, clock, h, said, update } from "./dom.js";
import { tell } from "./live.js";
import { FAILURE_LADDER, PROBLEMS, STATES, badge, callName } from "./words.js";

const FILTERS = ["state", "first_failed_layer", "server", "tool", "agent", "text"];
const PAGE = 100;

export function open(place, params, { signal }) {
  const wanted = Object.fromEntries(FILTERS.filter((key) => params[key]).map((key) => [key, params[key]]));
  const list = new List({ ...wanted }, signal);
  const form = filters(wanted, signal, (next) => {
    // Another address, the same view: who types goes on typing.
    history.replaceState(null, "", address("chains", next));
    return list.look(next);
  });
  place.append(
    h("div", { class: "headline" }, h("h1", {}, "Chains"), h("p", { class: "quiet", id: "found", "aria-live": "polite" })),
    form.element, list.element);
  return {
    title: wanted.state && STATES[wanted.state] ? `Chains, ${said(wanted.state)}` : "Chains",
    async refresh() {
      await Promise.all([list.refresh(), form.refresh()]);
    },
  };
}

function filters(wanted, signal, changed) {
  const select = (key, name, options) => h("label", {}, h("span", {}, name), h("select", { name: key },
    h("option", { value: "" }, "any"),
    options.map(([value, text]) => h("option", { value, selected: wanted[key] === value }, text))));
  const own = (key) => (wanted[key] ? [[wanted[key], wanted[key]]] : []);
  const element = h("form", { class: "filters", role: "search", "aria-label": "Chains" },
    h("label", { class: "wide" }, h("span", {}, "text"), h("input", { id: "text", name: "text", type: "search", value: wanted.text ?? "",
      placeholder: "a name, a code, an id", autocomplete: "off", spellcheck: "false" })),
    select("state", "state", [[PROBLEMS, "problems"], ...Object.keys(STATES).map((state) => [state, said(state)])]),
    select("first_failed_layer", "failed first", FAILURE_LADDER.map((layer) => [layer, layer])),
    select("server", "server", own("server")), select("tool", "tool", own("tool")), select("agent", "agent", own("agent")),
    h("a", { class: "button", href: "?view=chains" }, "Clear"));
  const read = () => {
    for (const key of FILTERS) delete wanted[key];
    Object.assign(wanted, Object.fromEntries([...new FormData(element)].filter(([, value]) => value)));
    changed({ ...wanted }).then(() => tell(null), (error) => error.name === "AbortError" || tell(error.message));
  };
  let waits = null;
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waits);
    read();
  });
  element.addEventListener("input", (event) => {
    clearTimeout(waits);
    if (event.target.name !== "text") return read();
    waits = setTimeout(read, 350);
  });
  signal.addEventListener("abort", () => clearTimeout(waits));
  return { element, refresh: () => offer(element, wanted, signal) };
}

/** The names that remembered chains bear. */
async function offer(form, wanted, signal) {
  const names = await ask("/v1/names", {}, signal);
  for (const [key, list] of [["server", names.servers], ["tool", names.tools], ["agent", names.agents]]) {
    const all = wanted[key] && !list.includes(wanted[key]) ? [wanted[key], ...list] : list;
    const select = form.elements[key];
    if (document.activeElement === select) continue;
    update(select, [h("option", { value: "" }, "any"),
      ...all.map((name) => h("option", { value: name, "data-key": `n${name}`, selected: wanted[key] === name }, name))]);
  }
}

class List {
  constructor(wanted, signal) {
    this.wanted = wanted;
    this.signal = signal;
    this.lines = [];
    this.fresh = [];
    this.gone = new Set();
    this.next = null;
    this.newest = null;
    /** Whether an answer to what is wanted has come. */
    this.begun = false;
    /** Whether older pages were asked for. */
    this.deep = false;
    this.body = h("tbody", {});
    this.news = h("button", { type: "button", class: "news", hidden: true, onclick: () => this.catchUp() });
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.older() }, "Older");
    this.nothing = h("div", {});
    this.table = h("table", { class: "list" }, h("thead", {}, h("tr", {},
      h("th", { scope: "col", class: "roomy" }, "state"), h("th", { scope: "col" }, "call"), h("th", { scope: "col" }, "why"),
      h("th", { scope: "col", class: "roomy" }, "next step"), h("th", { scope: "col", class: "roomy" }, "agent"),
      h("th", { scope: "col", class: "when" }, "began"))), this.body);
    this.element = h("div", { class: "listing" }, this.news, this.table, this.nothing, this.more);
  }

  /** From now on these are wanted. */
  look(wanted) {
    this.wanted = wanted;
    this.begun = false;
    return this.refresh();
  }

  async refresh() {
    const wanted = this.wanted;
    const page = await ask("/v1/chains", { ...wanted, limit: PAGE }, this.signal);
    if (wanted !== this.wanted) return;
    if (!this.begun || !(this.deep || this.isRead())) {
      this.begin(page);
    } else {
      const known = new Set(this.lines.map((verdict) => verdict.id));
      const latest = new Map(page.chains.map((verdict) => [verdict.id, verdict]));
      this.newest = page;
      this.fresh = page.chains.filter((verdict) => !known.has(verdict.id));
      // A list that is whole shows what has left it; of a longer one only its beginning is known.
      this.gone = new Set(page.next_page_token ? [] : [...known].filter((id) => !latest.has(id)));
      this.lines = this.lines.map((verdict) => latest.get(verdict.id) ?? verdict);
    }
    this.draw();
  }

  begin(page) {
    this.lines = page.chains;
    this.next = page.next_page_token;
    this.fresh = [];
    this.gone = new Set();
    this.deep = false;
    this.begun = true;
  }

  /** Whether somebody looks at a line: then nothing may move. */
  isRead() {
    return scrollY > 0 || this.body.matches(":hover") || this.body.contains(document.activeElement)
      || (document.getSelection()?.toString() ?? "") !== "";
  }

  catchUp() {
    this.begin(this.newest);
    this.draw();
    scrollTo(0, 0);
    this.body.querySelector("a.line")?.focus({ preventScroll: true });
  }

  async older() {
    const page = await ask("/v1/chains", { ...this.wanted, limit: PAGE, page_token: this.next }, this.signal);
    const known = new Set(this.lines.map((verdict) => verdict.id));
    this.lines = [...this.lines, ...page.chains.filter((verdict) => !known.has(verdict.id))];
    this.next = page.next_page_token;
    this.deep = true;
    this.draw();
  }

  draw() {
    update(this.body, this.lines.map((verdict) => line(verdict, this.gone.has(verdict.id))));
    const count = this.lines.length;
    const found = document.getElementById("found");
    if (found) update(found, [count === 0 ? "" : `${count.toLocaleString("en")}${this.next ? " newest" : ""} shown`]);
    this.table.hidden = count === 0;
    this.more.hidden = !this.next;
    this.news.hidden = this.fresh.length === 0;
    this.news.textContent = this.fresh.length >= PAGE ? "Many new chains" : `${this.fresh.length} new`;
    update(this.nothing, count > 0 ? [] : Object.keys(this.wanted).length
      ? [h("p", { class: "empty" }, "No remembered chain is like that. ", h("a", { href: "?view=chains" }, "All chains"))]
      : [h("p", { class: "empty" }, "Nothing has been judged yet. ", h("a", { href: "?" }, "How to send the first span"))]);
  }
}

function line(verdict, gone) {
  const layer = verdict.first_failed_layer;
  const acts = verdict.owner === "none" ? "" : said(verdict.owner);
  return h("tr", { "data-key": verdict.id, class: gone ? "gone" : null },
    h("td", { class: "state roomy" }, badge(verdict.state)),
    h("th", { scope: "row", class: "call" }, h("span", { class: "slim" }, badge(verdict.state)), h("a", { class: "line", href: address("chain", { id: verdict.id }) }, callName(verdict)),
      h("span", { class: "under" }, verdict.server)),
    h("td", { class: "why" }, said(verdict.reason) || h("span", { class: "quiet" }, "–"),
      h("span", { class: "under" }, [layer ? `failed first: ${layer}` : "",
        verdict.findings.length ? `${verdict.findings.length} finding${verdict.findings.length > 1 ? "s" : ""}` : "",
        verdict.revision > 1 ? `revision ${verdict.revision}` : ""].filter(Boolean).join(" · "))),
    h("td", { class: "roomy" }, said(verdict.next_step), h("span", { class: "under" }, acts)),
    h("td", { class: "roomy" }, verdict.agent ?? h("span", { class: "quiet" }, "–")),
    h("td", { class: "when" }, clock(verdict.start_time)));
}
