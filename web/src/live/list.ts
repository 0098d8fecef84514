// The list of runs: a click shows one, the boxes choose several to compare.
import { h } from "../dom";
import type { Summary } from "../document";
import { moment, percent, whole } from "../format";
import { stateMark, workersText } from "../sections/headline";

export interface RunList {
  element: HTMLElement;
  update(runs: Summary[], chosen: string[]): void;
}

const firstShown = 60;

function matches(run: Summary, words: string[]): boolean {
  const text = [run.name, run.model, run.data, run.state, run.precision, run.sync, run.algorithm, run.transport, workersText(run), `batch ${run.batch}`, `seed ${run.seed}`].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

// `choose` is called with the runs that are to be shown.
export function runList(choose: (ids: string[]) => void): RunList {
  let runs: Summary[] = [];
  let chosen: string[] = [];
  let most = firstShown;
  const items = h("ul", { class: "run-list", "aria-label": "Runs" });
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter runs", input: () => draw() });
  const more = h("button", { type: "button", class: "small", click: () => {
    most *= 4;
    draw();
  } });
  const total = h("span", { class: "quiet" });

  const item = (run: Summary): HTMLElement => {
    const on = chosen.includes(run.id);
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, change: () => {
      const next = on ? chosen.filter((id) => id !== run.id) : [...chosen, run.id];
      choose(next.length ? next : [run.id]);
    } });
    box.checked = on;
    return h(
      "li",
      { class: on ? "chosen" : null, "data-run": run.id },
      box,
      h(
        "button",
        { type: "button", class: "link", "aria-current": on ? "true" : null, click: () => choose([run.id]) },
        h("span", { class: "run-line" }, h("b", {}, `${run.model} on ${run.data}`), stateMark(run.state)),
        h("span", { class: "run-line quiet" }, h("span", {}, `${workersText(run)}, batch ${run.batch}`), h("span", {}, percent(run.test_accuracy, 2))),
        h("span", { class: "run-line quiet" }, h("span", {}, moment(run.started)), h("span", {}, run.images_per_s === null ? "" : `${whole(run.images_per_s)} images/s`)),
      ),
    );
  };
  const draw = (): void => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((run) => matches(run, words));
    const focused = document.activeElement instanceof HTMLElement && items.contains(document.activeElement) ? { run: document.activeElement.closest("li")?.dataset.run, tag: document.activeElement.tagName } : null;
    items.replaceChildren(...found.slice(0, most).map(item));
    if (focused) items.querySelector<HTMLElement>(`li[data-run="${focused.run}"] ${focused.tag.toLowerCase()}`)?.focus();
    more.hidden = found.length <= most;
    more.textContent = `${whole(found.length - most)} older`;
    total.textContent = words.length ? `${whole(found.length)} of ${whole(runs.length)} runs` : `${whole(runs.length)} runs`;
  };
  return {
    element: h("nav", { class: "side", "aria-label": "Runs" }, h("div", { class: "side-head" }, filter, total), items, more),
    update(next, ids) {
      runs = next;
      chosen = ids;
      draw();
    },
  };
}
