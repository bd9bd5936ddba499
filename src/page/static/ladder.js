// The two ladders of a verdict as a picture.

import { h } from "./dom.js";
import { FAILURE_LADDER, HEALTH_CONTRACT, RUNGS } from "./words.js";

function ladder(name, says, order, rungs, marked) {
  return h("div", { class: "ladder" }, h("h3", {}, name), h("p", { class: "quiet" }, says),
    h("ol", {}, order.map((layer) => {
      const [mark, word] = RUNGS[rungs[layer]] ?? ["•", rungs[layer]];
      return h("li", { class: `rung r-${rungs[layer]}`, "data-key": layer, "aria-current": layer === marked ? "true" : null },
        h("span", { class: "disc", "aria-hidden": "true" }, mark), h("span", { class: "name" }, layer), h("span", { class: "word" }, word));
    })));
}

export const ladders = (verdict) => h("div", { class: "ladders" },
  ladder("Health contract", "What has to be seen before a call counts as healthy.", HEALTH_CONTRACT, verdict.layers),
  ladder("Failure ladder", "Where this attempt broke first.", FAILURE_LADDER, verdict.failure_layers, verdict.first_failed_layer));
