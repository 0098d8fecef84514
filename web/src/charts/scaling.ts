// Speed-up and efficiency over the number of workers, with the spread over repeats.
import { svg, h } from "../dom";
import { fixed, percent, whole } from "../format";
import type { Scaling, ScalingPoint, Spread } from "../scaling";
import { figure, type Key } from "./figure";
import { pointed } from "./pointed";
import { ticks } from "./timeline";

const margin = { left: 46, right: 16, top: 12, bottom: 44 };
const height = 260;

interface Panel {
  title: string;
  value: (point: ScalingPoint) => Spread;
  ideal: (workers: number) => number;
  format: (value: number) => string;
  top: number;
}

function draw(panel: Panel, lines: Scaling[], width: number): SVGElement {
  const counts = [...new Set(lines.flatMap((line) => line.points.map((point) => point.workers)))].sort((a, b) => a - b);
  const first = Math.log2(counts[0]!);
  const last = Math.log2(counts.at(-1)!);
  const x = (workers: number): number => margin.left + ((Math.log2(workers) - first) / (last - first)) * (width - margin.left - margin.right - 24) + 12;
  const y = (value: number): number => height - margin.bottom - (value / panel.top) * (height - margin.top - margin.bottom);
  const grid = ticks(0, panel.top).map((value) => svg("g", {}, svg("line", { x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value), class: "grid-line" }), svg("text", { x: margin.left - 8, y: y(value) + 4, class: "axis-text", "text-anchor": "end" }, panel.format(value))));
  const names = counts.map((workers) => svg("text", { x: x(workers), y: height - margin.bottom + 20, class: "axis-text", "text-anchor": "middle" }, String(workers)));
  const ideal = svg("polyline", { points: counts.map((workers) => `${x(workers)},${y(Math.min(panel.ideal(workers), panel.top))}`).join(" "), class: "ideal" });
  const marks = lines.flatMap((line, index) => {
    const colour = `var(--series-${index % 6})`;
    const path = svg("polyline", { points: line.points.map((point) => `${x(point.workers)},${y(panel.value(point).median)}`).join(" "), class: "scaling-line" });
    path.style.stroke = colour;
    const dots = line.points.flatMap((point) => {
      const value = panel.value(point);
      const whisker = svg("line", { x1: x(point.workers), x2: x(point.workers), y1: y(value.low), y2: y(value.high), class: "whisker" });
      whisker.style.stroke = colour;
      const dot = svg("circle", { cx: x(point.workers), cy: y(value.median), r: 4.5, class: "mark" });
      dot.style.fill = colour;
      pointed(dot, () => [`${point.workers} workers`, `${panel.title} ${panel.format(value.median)}`, value.count > 1 ? `${panel.format(value.low)} to ${panel.format(value.high)} in ${value.count} repeats` : "one run", `${whole(point.images_per_s.median)} images/s`]);
      return [whisker, dot];
    });
    return [path, ...dots];
  });
  const label = svg("text", { x: margin.left + (width - margin.left) / 2, y: height - 6, class: "axis-text", "text-anchor": "middle" }, "workers");
  return svg("svg", { width, height, class: "scaling", "aria-hidden": "true" }, ...grid, ideal, ...names, label, ...marks);
}

function figureOf(panel: Panel, lines: Scaling[], name: string): HTMLElement {
  const place = h("div", { class: "scaling-place", role: "img", "aria-label": `${panel.title} over the number of workers. ${lines.map((line) => `${line.title}: ${line.points.map((point) => `${panel.format(panel.value(point).median)} with ${point.workers}`).join(", ")}`).join(". ")}.` });
  place.style.minHeight = `${height}px`;
  new ResizeObserver(() => {
    if (place.isConnected && place.clientWidth > 0) place.replaceChildren(draw(panel, lines, place.clientWidth));
  }).observe(place);
  const keys: Key[] = [...lines.map((line, index) => {
    const mark = h("i", { class: "box", "aria-hidden": "true" });
    mark.style.background = `var(--series-${index % 6})`;
    return { label: line.title, swatch: mark };
  }), { label: "ideal", swatch: svg("svg", { class: "swatch", width: 18, height: 12, "aria-hidden": "true" }, svg("line", { x1: 1, y1: 6, x2: 17, y2: 6, class: "ideal" })) }];
  const text = (value: Spread): string => (value.count > 1 ? `${panel.format(value.median)} (${panel.format(value.low)} to ${panel.format(value.high)})` : panel.format(value.median));
  return figure({
    title: `${panel.title}, ${name}`,
    keys,
    chart: place,
    table: () => ({
      columns: ["Runs", "Workers", "Repeats", "Images/s", panel.title],
      rows: lines.flatMap((line) => line.points.map((point) => [line.title, String(point.workers), String(point.images_per_s.count), whole(point.images_per_s.median), text(panel.value(point))])),
    }),
  }).element;
}

export function scalingCharts(kind: "strong" | "weak", lines: Scaling[]): HTMLElement[] {
  const batches = [...new Set(lines.map((line) => line.batch))].join(", ");
  const name = kind === "strong" ? `strong scaling (batch ${batches} in all)` : `weak scaling (batch ${batches} each)`;
  const most = Math.max(...lines.flatMap((line) => line.points.map((point) => Math.max(point.workers, point.speedup.high))));
  const best = Math.max(1, ...lines.flatMap((line) => line.points.map((point) => point.efficiency.high)));
  return [
    figureOf({ title: "Speed-up", value: (point) => point.speedup, ideal: (workers) => workers, format: (value) => `${fixed(value, value % 1 === 0 ? 0 : 2)}×`, top: most * 1.05 }, lines, name),
    figureOf({ title: "Efficiency", value: (point) => point.efficiency, ideal: () => 1, format: (value) => percent(value, 0), top: best * 1.08 }, lines, name),
  ];
}
