// Several runs side by side: their curves, their numbers, and how they scale.
import { h } from "../dom";
import type { Run, Summary } from "../document";
import { fixed, percent, seconds, short, whole } from "../format";
import { scalings } from "../scaling";
import { lineChart, type Curve } from "../charts/line";
import * as scales from "../charts/scales";
import { scalingCharts } from "../charts/scaling";
import { grid, section } from "./section";
import { stateMark } from "./headline";

// What tells the runs apart, in few words: the settings in which they differ.
export function labels(runs: Summary[]): string[] {
  const parts: ((run: Summary) => string)[] = [
    (run) => run.model,
    (run) => run.data,
    (run) => `${run.workers} ${run.workers === 1 ? "worker" : "workers"}`,
    (run) => (run.servers > 0 ? `${run.servers} servers` : ""),
    (run) => run.sync,
    (run) => run.algorithm,
    (run) => run.transport,
    (run) => run.wire,
    (run) => run.precision,
    (run) => run.world,
    (run) => `batch ${run.batch}`,
    (run) => `seed ${run.seed}`,
  ];
  const differing = parts.filter((part) => new Set(runs.map(part)).size > 1);
  const names = runs.map((run) => differing.map((part) => part(run)).filter(Boolean).join(", "));
  return names.map((name, index) => (name === "" || names.indexOf(name) !== names.lastIndexOf(name) ? [name, runs[index]!.name].filter(Boolean).join(", ") : name));
}

function table(runs: Run[], names: string[], show: (run: Run) => void): HTMLElement {
  const base = runs[0]!;
  const ratio = (run: Run): string => (run.images_per_s && base.images_per_s ? `${fixed(run.images_per_s / base.images_per_s, 2)}×` : "–");
  const head = ["Run", "State", "Workers", "Batch", "Images/s", "Against the first", "Wall time", "Test accuracy", "Test loss", "Communication"];
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Runs side by side" },
    h(
      "table",
      { class: "runs" },
      h("caption", { class: "hidden" }, "Runs side by side"),
      h("thead", {}, h("tr", {}, ...head.map((name, index) => h("th", { scope: "col", class: index > 1 ? "number" : null }, name)))),
      h(
        "tbody",
        {},
        ...runs.map((run, index) => {
          const mark = h("i", { class: "box", "aria-hidden": "true" });
          mark.style.background = `var(--series-${index % 6})`;
          const cells = [whole(run.workers), whole(run.batch), whole(run.images_per_s), ratio(run), seconds(run.wall_s), percent(run.test_accuracy, 2), short(run.test_loss), percent(run.communication_share)];
          return h("tr", {}, h("th", { scope: "row" }, h("button", { type: "button", class: "link", click: () => show(run) }, mark, names[index]!)), h("td", {}, stateMark(run.state)), ...cells.map((text) => h("td", { class: "number" }, text)));
        }),
      ),
    ),
  );
}

function curves(runs: Run[], names: string[], pick: (run: Run) => { x: number[]; y: (number | null)[] }, points: boolean): Curve[] {
  return runs.slice(0, 18).map((run, index) => ({ label: names[index]!, ...pick(run), colour: index, ...(points ? { points, dashed: false } : {}) })).filter((curve) => curve.x.length > 0);
}

export function comparison(runs: Run[], show: (run: Run) => void): HTMLElement {
  const names = labels(runs);
  const { time, step, loss } = scales;
  const accuracy = { ...scales.share, most: 1 };
  const found = scalings(runs);
  const kinds = (["strong", "weak"] as const).map((kind) => ({ kind, lines: found.filter((one) => one.kind === kind).slice(0, 6) })).filter((one) => one.lines.length > 0);
  return section(
    `${runs.length} runs side by side`,
    "",
    table(runs, names, show),
    kinds.length ? grid(...kinds.flatMap(({ kind, lines }) => scalingCharts(kind, lines))) : null,
    grid(
      lineChart({ title: "Training loss by time", x: time, y: loss, logarithmic: true, describe: "Training loss of each run over its wall time." }, curves(runs, names, (run) => ({ x: run.steps_table.t_s, y: run.steps_table.loss }), false)).element,
      lineChart({ title: "Training loss by step", x: step, y: loss, logarithmic: true, describe: "Training loss of each run over its steps." }, curves(runs, names, (run) => ({ x: run.steps_table.step, y: run.steps_table.loss }), false)).element,
      lineChart({ title: "Test accuracy by time", x: time, y: accuracy, describe: "Test accuracy of each run over its wall time." }, curves(runs, names, (run) => ({ x: run.epochs_table.t_s, y: run.epochs_table.test_accuracy }), true)).element,
      lineChart({ title: "Throughput", x: time, y: { ...scales.amount, label: "images/s", fromZero: true }, describe: "Images per second of each run over its wall time." }, curves(runs, names, (run) => ({ x: run.steps_table.t_s, y: run.steps_table.images_per_s }), false)).element,
    ),
  );
}

export function pick(runs: Run[], current: Run, show: (run: Run) => void): HTMLElement {
  const names = labels(runs);
  const select = h("select", { id: "run-choice", change: () => show(runs[select.selectedIndex]!) }, ...runs.map((run, index) => h("option", { selected: run === current }, names[index]!)));
  return h("div", { class: "choice" }, h("label", { for: "run-choice" }, "Details of"), select);
}
