// Many failures with one cause: whose they are, how many, and whether they are over.

import { ask } from "./api.js";
import { address, clock, h, said, short, update } from "./dom.js";
import { NEXT } from "./words.js";

const STATUSES = { open: "bad", recovering: "warn", resolved: "good", expired: "quiet" };

const OVER_NOT = "open,recovering";
const TABS = { "not over": OVER_NOT, resolved: "resolved", expired: "expired", all: "open,recovering,resolved,expired" };

export function open(place, params, { signal }) {
  const wanted = { status: params.status ?? OVER_NOT, server: params.server, owner: params.owner };
  return {
    title: "Incidents",
    async refresh() {
      const page = await ask("/v1/incidents", { ...wanted, limit: 200, page_token: params.from }, signal);
      update(place, [
        h("div", { class: "headline" }, h("h1", {}, "Incidents", wanted.owner ? ` of the ${said(wanted.owner)}` : ""),
          h("p", { class: "spans" }, Object.entries(TABS).map(([name, status]) => h("a", {
            href: address("incidents", { ...wanted, status: status === OVER_NOT ? "" : status }), "aria-current": wanted.status === status ? "true" : null,
          }, name)))),
        page.incidents.length === 0
          ? h("p", { class: "empty" }, wanted.status === OVER_NOT && !wanted.owner && !wanted.server ? "No incident is open. Failures with one cause are gathered here." : ["No incident is like that. ", h("a", { href: "?view=incidents" }, "Those that are not over")])
          : page.incidents.map(card),
        page.next_page_token ? h("p", {}, h("a", { href: address("incidents", { ...wanted, from: page.next_page_token }) }, "Older")) : null,
      ]);
    },
  };
}

function card(incident) {
  const layer = ["transport", "protocol", "authority", "execution", "outcome"].includes(incident.layer) ? incident.layer : "";
  return h("section", { class: "card incident", "data-key": [incident.server, incident.layer, incident.reason, incident.discriminator].join("\n") },
    h("h2", {}, h("span", { class: `note ${STATUSES[incident.status]}` }, incident.status), " ",
      h("a", { class: "line", href: address("chains", { server: incident.server, first_failed_layer: layer, text: incident.reason }) }, said(incident.reason)), " at ", incident.server),
    h("p", {}, h("strong", {}, said(incident.owner)), ": ", NEXT[incident.next_step] ?? said(incident.next_step)),
    h("dl", { class: "facts" },
      fact("failures", incident.count), fact("layer", incident.layer),
      fact("first seen", clock(incident.first_seen)), fact("last seen", clock(incident.last_seen)),
      incident.resolved_at ? fact("resolved", clock(incident.resolved_at)) : null,
      incident.discriminator ? fact("what they share", short(incident.discriminator, 40)) : null,
      incident.tools.length ? fact("tools", incident.tools.join(", ")) : null,
      incident.agents.length ? fact("agents", incident.agents.join(", ")) : null));
}

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
