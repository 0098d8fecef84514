// What a line chart says about the place that the reader points at, with the mouse or with keys.
import type uPlot from "uplot";
import { h } from "../dom";
import type { LineOptions } from "./line";

// A small box beside the cursor with the values of the curves there.
export function tooltip(columns: number[], labels: string[], options: LineOptions): uPlot.Plugin {
  const box = h("div", { class: "tip", role: "status", "aria-live": "off" });
  // The nearest value at or before the place, since curves need not have one everywhere.
  const near = (values: ArrayLike<number | null | undefined>, index: number): number | null => {
    for (let back = 0; back < 64 && index - back >= 0; ++back) {
      const value = values[index - back];
      if (value !== null && value !== undefined) return value;
    }
    return null;
  };
  return {
    hooks: {
      init: (plot) => {
        box.hidden = true;
        plot.over.append(box);
        plot.over.addEventListener("mouseenter", () => box.setAttribute("aria-live", "off"));
        plot.over.addEventListener("mouseleave", () => (box.hidden = true));
      },
      setCursor: (plot) => {
        const index = plot.cursor.idx;
        const left = plot.cursor.left ?? -1;
        if (index === null || index === undefined || left < 0) {
          box.hidden = true;
          return;
        }
        const lines = columns.flatMap((column, at) => {
          const value = near(plot.data[column]!, index);
          if (value === null) return [];
          const stroke = plot.series[column]!.stroke;
          const mark = h("i");
          mark.style.background = typeof stroke === "function" ? String(stroke(plot, column)) : String(stroke);
          return [h("div", {}, mark, h("span", {}, labels[at] ?? ""), h("b", {}, options.y.format(value)))];
        });
        box.replaceChildren(h("div", { class: "tip-head" }, `${options.x.label} ${options.x.format(plot.data[0][index]!)}`), ...lines);
        box.hidden = lines.length === 0;
        const right = left > plot.over.clientWidth / 2;
        box.style.left = right ? "" : `${left + 14}px`;
        box.style.right = right ? `${plot.over.clientWidth - left + 14}px` : "";
      },
    },
  };
}

// Arrows walk, plus and minus zoom around the cursor, 0 or Escape shows all.
export function keyboard(place: HTMLElement, get: () => uPlot | null): void {
  const zoom = (plot: uPlot, factor: number): void => {
    const x = plot.data[0];
    const { min, max } = plot.scales.x!;
    if (min === undefined || max === undefined || x.length < 2) return;
    const centre = plot.cursor.idx !== null && plot.cursor.idx !== undefined ? x[plot.cursor.idx]! : (min + max) / 2;
    const least = x[0]!;
    const most = x[x.length - 1]!;
    plot.setScale("x", { min: Math.max(least, centre - (centre - min) * factor), max: Math.min(most, centre + (max - centre) * factor) });
  };
  const walk = (plot: uPlot, by: number): void => {
    const x = plot.data[0];
    const from = plot.cursor.idx ?? (by > 0 ? -1 : x.length);
    const index = Math.max(0, Math.min(x.length - 1, from + by));
    plot.root.querySelector(".tip")?.setAttribute("aria-live", "polite");
    plot.setCursor({ left: plot.valToPos(x[index]!, "x"), top: plot.over.clientHeight / 2 });
  };
  place.addEventListener("keydown", (event) => {
    const plot = get();
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") walk(plot, step);
    else if (event.key === "ArrowLeft") walk(plot, -step);
    else if (event.key === "+" || event.key === "=") zoom(plot, 0.5);
    else if (event.key === "-") zoom(plot, 2);
    else if (event.key === "0" || event.key === "Escape") plot.setScale("x", { min: plot.data[0][0]!, max: plot.data[0][plot.data[0].length - 1]! });
    else return;
    event.preventDefault();
  });
}
