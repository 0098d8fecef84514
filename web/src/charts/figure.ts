// The frame around every chart: title, legend, the chart, and the same numbers as a table.
import { h, unique } from "../dom";

export interface Key {
  label: string;
  swatch: HTMLElement | SVGElement;
}

export interface Table {
  columns: string[];
  rows: string[][];
}

export interface FigureOptions {
  title: string;
  note?: string;
  keys?: Key[];
  controls?: HTMLElement[];
  chart: HTMLElement;
  table: () => Table; // asked for when the reader opens it
  wide?: boolean;
}

export function drawTable({ columns, rows }: Table, caption: string): HTMLElement {
  const numeric = columns.map((_, index) => rows.every((row) => /^[-–+\d.,%×\s]|^$/.test(row[index] ?? "")));
  const cls = (index: number): string | null => (numeric[index] && index > 0 ? "number" : null);
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, ...columns.map((name, index) => h("th", { scope: "col", class: cls(index) }, name)))),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h("tr", {}, ...row.map((text, index) => (index === 0 ? h("th", { scope: "row" }, text) : h("td", { class: cls(index) }, text)))),
        ),
      ),
    ),
  );
}

// The element has `refresh()` through the returned function: an open table shows new numbers.
export function figure(options: FigureOptions): { element: HTMLElement; refresh: () => void } {
  const title = unique("figure");
  const body = h("div", { class: "table-body" });
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers", h("span", { class: "hidden" }, ` of: ${options.title}`)), body);
  const refresh = (): void => {
    if (details.open) body.replaceChildren(drawTable(options.table(), options.title));
  };
  details.addEventListener("toggle", refresh);
  const element = h(
    "figure",
    { class: options.wide ? "chart wide" : "chart", "aria-labelledby": title },
    h(
      "figcaption",
      {},
      h("span", { class: "chart-title", id: title }, options.title),
      options.note ? h("span", { class: "chart-note" }, options.note) : null,
      options.controls?.length ? h("span", { class: "chart-controls" }, ...options.controls) : null,
    ),
    options.keys?.length ? h("ul", { class: "legend" }, ...options.keys.map((key) => h("li", {}, key.swatch, key.label))) : null,
    options.chart,
    details,
  );
  return { element, refresh };
}

// At most `most` of the rows, evenly, the last among them.
export function thin<Row>(rows: Row[], most: number): Row[] {
  if (rows.length <= most) return rows;
  return Array.from({ length: most }, (_, index) => rows[Math.round((index * (rows.length - 1)) / (most - 1))]!);
}
