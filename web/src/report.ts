// A report: one run in full, or several side by side and one of them in full.
import { h } from "./dom";
import type { Document, Run } from "./document";
import { moment } from "./format";
import { comparison, pick } from "./sections/comparison";
import { headline, runTitle } from "./sections/headline";
import { layers } from "./sections/layers";
import { machines } from "./sections/machines";
import { provenance } from "./sections/provenance";
import { staleness } from "./sections/staleness";
import { time } from "./sections/time";
import { training } from "./sections/training";

export interface RunView {
  element: HTMLElement;
  // New numbers of the same run. What the reader has zoomed, opened or scrolled to stays.
  update(run: Run): void;
}

export function runView(first: Run): RunView {
  const head = h("div", {}, headline(first));
  const curves = training(first);
  const rest = h("div", {});
  const fill = (run: Run): void => {
    const parts = [time(run), staleness(run), machines(run), layers(run), provenance(run)];
    rest.replaceChildren(...parts.filter((part): part is HTMLElement => part !== null));
  };
  fill(first);
  let drawn = key(first);
  return {
    element: h("article", { class: "run", "data-run": first.id }, head, curves.element, rest),
    update(run) {
      head.replaceChildren(headline(run));
      curves.update(run);
      if (key(run) === drawn || rest.contains(document.activeElement) || rest.querySelector("details[open]")) return;
      drawn = key(run);
      fill(run);
    },
  };
}

// The parts below the curves are drawn anew when this changes: at most every ten seconds of the run, and at its end.
function key(run: Run): string {
  return `${run.state} ${run.epochs_done} ${Math.floor((run.wall_s ?? 0) / 10)}`;
}

export function report(document_: Document): HTMLElement {
  const runs = document_.runs;
  const body = h("main", { id: "content" });
  const detail = h("div", {});
  const show = (run: Run, scroll = true): void => {
    detail.replaceChildren(...(runs.length > 1 ? [pick(runs, run, (next) => show(next, false))] : []), runView(run).element);
    if (scroll) detail.scrollIntoView();
  };
  const first = runs[0];
  if (!first) {
    body.append(h("p", { class: "lead" }, "There is no run in this report."));
    return body;
  }
  document.title = runs.length > 1 ? `${runs.length} runs – Convoy` : `${runTitle(first)} – Convoy`;
  if (runs.length > 1) body.append(comparison(runs, show));
  show(first, false);
  body.append(detail, h("footer", {}, `${document_.program} · report of ${moment(document_.generated)}`));
  return body;
}
