// The network, layer by layer, with what each costs; a click on a heading sorts.
import { h } from "../dom";
import type { Layer, Run } from "../document";
import { milliseconds, percent, whole } from "../format";
import { section } from "./section";

interface Column {
  title: string;
  value: (layer: Layer, index: number) => string | number | null;
  text?: (layer: Layer) => string;
  bar?: string; // phase whose colour it has
}

const both = (layer: Layer): number | null => (layer.forward_ms === null && layer.backward_ms === null ? null : (layer.forward_ms ?? 0) + (layer.backward_ms ?? 0));

function columnsOf(run: Run): Column[] {
  const total = run.layers.reduce((sum, layer) => sum + (both(layer) ?? 0), 0);
  const waits = run.layers.some((layer) => layer.wait_ms !== null);
  return [
    { title: "Layer", value: (_, index) => index, text: (layer) => layer.name },
    { title: "Kind", value: (layer) => layer.kind },
    { title: "Output", value: (layer) => layer.output },
    { title: "Parameters", value: (layer) => layer.parameters, text: (layer) => whole(layer.parameters) },
    { title: "Forward", value: (layer) => layer.forward_ms, text: (layer) => milliseconds(layer.forward_ms || null), bar: "forward" },
    { title: "Backward", value: (layer) => layer.backward_ms, text: (layer) => milliseconds(layer.backward_ms || null), bar: "backward" },
    ...(waits ? [{ title: "Waiting", value: (layer: Layer) => layer.wait_ms, text: (layer: Layer) => milliseconds(layer.wait_ms), bar: "wait" }] : []),
    { title: "Share", value: both, text: (layer) => percent(total > 0 ? (both(layer) ?? 0) / total : null) },
  ];
}

export function layers(run: Run): HTMLElement | null {
  if (run.layers.length === 0) return null;
  const columns = columnsOf(run);
  const most = Math.max(1e-9, ...run.layers.flatMap((layer) => [layer.forward_ms ?? 0, layer.backward_ms ?? 0, layer.wait_ms ?? 0]));
  let sorted = 0;
  let down = false;
  const body = h("tbody");
  const heads = columns.map((column, index) =>
    h("th", { scope: "col", class: index > 2 ? "number" : null }, h("button", { type: "button", class: "sort", click: () => {
      down = sorted === index ? !down : index > 2;
      sorted = index;
      fill();
    } }, column.title)),
  );
  const cell = (column: Column, layer: Layer, index: number, at: number): HTMLElement => {
    const text = column.text ? column.text(layer) : String(column.value(layer, index) ?? "");
    if (at === 0) return h("th", { scope: "row" }, text);
    if (!column.bar) return h("td", { class: at > 2 ? "number" : null }, text);
    const value = column.value(layer, index);
    const bar = h("i", { class: "cell-bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * (typeof value === "number" ? value : 0)) / most}%`;
    bar.style.background = `var(--phase-${column.bar})`;
    return h("td", { class: "number barred" }, h("span", {}, text), bar);
  };
  const fill = (): void => {
    const column = columns[sorted]!;
    const rows = run.layers.map((layer, index) => ({ layer, index, value: column.value(layer, index) }));
    rows.sort((a, b) => {
      const order = typeof a.value === "string" || typeof b.value === "string" ? String(a.value ?? "").localeCompare(String(b.value ?? "")) : (a.value ?? -1) - (b.value ?? -1);
      return down ? -order : order;
    });
    body.replaceChildren(...rows.map(({ layer, index }) => h("tr", {}, ...columns.map((one, at) => cell(one, layer, index, at)))));
    heads.forEach((head, index) => head.setAttribute("aria-sort", index === sorted ? (down ? "descending" : "ascending") : "none"));
  };
  fill();
  return section(
    "Layers",
    "Mean time of a step on one rank.",
    h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Layers" }, h("table", { class: "layers" }, h("caption", { class: "hidden" }, "Layers and what they cost"), h("thead", {}, h("tr", {}, ...heads)), body)),
  );
}
