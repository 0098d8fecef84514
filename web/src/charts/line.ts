// Curves over time or steps, on uPlot: drag to zoom, arrow keys to walk, a table behind.
import uPlot from "uplot";
import { h, svg } from "../dom";
import type { Numbers } from "../document";
import { seriesColour, seriesDash } from "../palette";
import { cssColour, onTheme, theme } from "../theme";
import { figure, thin, type Key } from "./figure";
import { keyboard, tooltip } from "./line_cursor";

export interface Curve {
  label: string;
  x: number[];
  y: Numbers;
  colour: number; // index into the series' colours
  low?: Numbers; // a band around the curve
  high?: Numbers;
  points?: boolean; // single measurements rather than a course
  dashed?: boolean;
}

export interface Scale {
  label: string;
  format: (value: number) => string;
  tick: (value: number) => string; // the same, shorter, for round values
  whole?: boolean; // nothing between whole numbers
}

export interface LineOptions {
  title: string;
  x: Scale;
  y: Scale & { fromZero?: boolean; most?: number };
  logarithmic?: boolean; // the reader may ask for it
  height?: number;
  together?: string; // charts with the same word show their cursors together
  wide?: boolean;
  describe: string; // what the curves show, in a sentence, for those who do not see them
}

export interface LineChart {
  element: HTMLElement;
  update(curves: Curve[]): void;
}

const font = "12px 'Inter Variable', system-ui, sans-serif";

function aligned(curves: Curve[]): uPlot.AlignedData {
  const tables = curves.map((curve) => {
    const columns: (number | null)[][] = [curve.x, curve.y];
    if (curve.low && curve.high) columns.push(curve.low, curve.high);
    return columns as uPlot.AlignedData;
  });
  return uPlot.join(tables, tables.map((table) => table.map(() => 2))) as uPlot.AlignedData;
}

function seriesOf(curves: Curve[], options: LineOptions): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = [{ label: options.x.label }];
  const bands: uPlot.Band[] = [];
  for (const curve of curves) {
    const stroke = (): string => seriesColour(curve.colour, theme());
    const dash = curve.dashed ? [5, 4] : seriesDash(curve.colour);
    series.push({
      label: curve.label,
      stroke,
      width: 1.75,
      ...(dash.length ? { dash } : {}),
      spanGaps: true,
      points: { show: curve.points ?? curve.x.length < 2, size: 7, fill: stroke },
    });
    if (!curve.low || !curve.high) continue;
    const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
    series.push({ ...edge, label: "" }, { ...edge, label: "" });
    bands.push({ series: [series.length - 1, series.length - 2], fill: () => `${seriesColour(curve.colour, theme())}2e` });
  }
  return { series, bands };
}

const wholes = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat();

function axes(options: LineOptions): uPlot.Axis[] {
  const grid = { stroke: () => cssColour("grid"), width: 1 };
  const common = { stroke: () => cssColour("quiet"), font, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, space: 70, size: 28, ...(options.x.whole ? { incrs: wholes } : {}), values: (_, splits) => splits.map((value) => options.x.tick(value)) },
    {
      ...common,
      grid,
      space: 36,
      values: (_, splits) => splits.map((value) => (value === null ? "" : options.y.tick(value))),
      size: (self, values) => {
        if (!values?.length) return 40;
        self.ctx.font = font;
        return Math.ceil(Math.max(...values.map((text) => self.ctx.measureText(text ?? "").width))) + 14;
      },
    },
  ];
}

function range(options: LineOptions): uPlot.Range.Function {
  return (_, low, high) => {
    if (low === null || high === null) return [0, 1];
    const bottom = options.y.fromZero ? Math.min(0, low) : low;
    const room = 0.06 * (high - bottom || Math.abs(high) || 1);
    const top = Math.min(high + room, options.y.most ?? Infinity);
    return [options.y.fromZero ? bottom : bottom - room, Math.max(top, bottom + 1e-9)];
  };
}

function swatch(curve: Curve): SVGElement {
  const dash = curve.dashed ? [5, 4] : seriesDash(curve.colour);
  const line = curve.points && curve.dashed === undefined
    ? svg("circle", { cx: 9, cy: 6, r: 4, fill: `var(--series-${curve.colour % 6})` })
    : svg("line", { x1: 1, y1: 6, x2: 17, y2: 6, stroke: `var(--series-${curve.colour % 6})`, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") || null });
  return svg("svg", { class: "swatch", width: 18, height: 12, "aria-hidden": "true" }, line);
}

function rows(curves: Curve[], options: LineOptions): string[][] {
  const data = aligned(curves);
  const columns = columnsOf(curves);
  const indices = thin(Array.from(data[0], (_, index) => index), 60);
  return indices.map((index) => [
    options.x.format(data[0][index]!),
    ...columns.map((column) => {
      const value = data[column]![index];
      return value === null || value === undefined ? "" : options.y.format(value);
    }),
  ]);
}

// Where each curve stands among the aligned columns.
function columnsOf(curves: Curve[]): number[] {
  let next = 1;
  return curves.map((curve) => {
    const own = next;
    next += curve.low && curve.high ? 3 : 1;
    return own;
  });
}

export function lineChart(options: LineOptions, first: Curve[]): LineChart {
  let curves = first;
  let plot: uPlot | null = null;
  let shape = "";
  let logarithmic = false;
  const height = options.height ?? 220;
  const place = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": `${options.title}. ${options.describe} Arrow keys walk along the curve, plus and minus zoom, 0 shows all.` });
  place.style.minHeight = `${height}px`;

  const build = (): void => {
    plot?.destroy();
    const { series, bands } = seriesOf(curves, options);
    plot = new uPlot(
      {
        width: Math.max(200, place.clientWidth),
        height,
        series,
        bands,
        axes: axes(options),
        legend: { show: false },
        padding: [10, 22, 0, 0],
        scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : { range: range(options) } },
        cursor: { y: false, points: { size: 8 }, ...(options.together ? { sync: { key: options.together } } : {}) },
        plugins: [tooltip(columnsOf(curves), curves.map((curve) => curve.label), options)],
      },
      aligned(curves),
      place,
    );
    shape = shapeOf(curves);
  };
  const shapeOf = (list: Curve[]): string => JSON.stringify(list.map((curve) => [curve.label, curve.colour, !!curve.low]));

  const toggle = h("button", { type: "button", class: "small", "aria-pressed": "false", click: () => {
    logarithmic = !logarithmic;
    toggle.setAttribute("aria-pressed", String(logarithmic));
    build();
  } }, "log");
  const keys: Key[] = first.length > 1 ? first.map((curve) => ({ label: curve.label, swatch: swatch(curve) })) : [];
  const frame = figure({
    ...options,
    note: options.y.label,
    keys,
    controls: options.logarithmic ? [toggle] : [],
    chart: place,
    table: () => ({ columns: [options.x.label, ...curves.map((curve) => curve.label)], rows: rows(curves, options) }),
  });

  keyboard(place, () => plot);
  const stop = onTheme(() => plot?.redraw(false));
  let shown = false; // once it was: before, it has only not been put into the page yet
  const watcher = new ResizeObserver(() => {
    if (!place.isConnected) {
      if (shown) watcher.disconnect(), stop(), plot?.destroy();
      return;
    }
    if (place.clientWidth < 1) return;
    shown = true;
    if (!plot) build();
    else if (plot.width !== place.clientWidth) plot.setSize({ width: place.clientWidth, height });
  });
  watcher.observe(place);
  void document.fonts.ready.then(() => plot?.redraw(false, true));

  return {
    element: frame.element,
    update(next) {
      const zoomed = plot !== null && isZoomed(plot);
      curves = next;
      if (!plot) return;
      if (shapeOf(next) !== shape) build();
      else plot.setData(aligned(next), !zoomed);
      if (zoomed) plot.redraw();
      frame.refresh();
    },
  };
}

function isZoomed(plot: uPlot): boolean {
  const x = plot.data[0];
  const { min, max } = plot.scales.x!;
  return x.length > 1 && min !== undefined && max !== undefined && (min > x[0]! || max < x[x.length - 1]!);
}
