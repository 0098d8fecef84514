// What every rank did in one step, on one clock: a lane per rank and kind of work. Drag to zoom, Shift and drag to move.
import { h, svg } from "../dom";
import type { Run, Span, Timeline } from "../document";
import { bytes, milliseconds, whole } from "../format";
import { phaseLabel } from "../palette";
import { figure } from "./figure";
import { phaseKeys } from "./ledger";
import { point, pointAway } from "./pointed";

const laneHeight = 22;
const laneGap = 3;
const rankGap = 12;
const axisHeight = 24;
const nameWidth = 128;

// The phase whose colour a span takes.
export function phaseOf(span: Span): string {
  const word = span.name.split(" ")[0] ?? "";
  if (["forward", "backward", "load", "communication", "wait", "update", "evaluate", "checkpoint"].includes(word)) return word;
  if (span.lane === "communication") return "communication";
  return span.lane === "optimizer" ? "update" : "other";
}

interface Lane {
  rank: number;
  name: string;
  top: number;
  spans: Span[];
}

function lanesOf(timeline: Timeline): Lane[] {
  const order = ["compute", "communication", "optimizer"];
  const place = (name: string): number => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  const groups = new Map<string, Lane>();
  for (const span of timeline.spans) {
    const key = `${span.rank} ${span.lane}`;
    const lane = groups.get(key) ?? { rank: span.rank, name: span.lane, top: 0, spans: [] };
    lane.spans.push(span);
    groups.set(key, lane);
  }
  const lanes = [...groups.values()].sort((a, b) => a.rank - b.rank || place(a.name) - place(b.name));
  let top = 4;
  lanes.forEach((lane, index) => {
    if (index > 0) top += lanes[index - 1]!.rank === lane.rank ? laneGap : rankGap;
    lane.top = top;
    top += laneHeight;
  });
  return lanes;
}

// Round numbers between two times, about six of them.
export function ticks(from: number, to: number): number[] {
  const rough = (to - from) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  const result: number[] = [];
  for (let value = Math.ceil(from / step) * step; value <= to + step * 1e-6; value += step) result.push(value);
  return result;
}

class View {
  from = 0;
  to: number;
  readonly element = svg("svg", { class: "timeline", tabindex: 0, role: "img" });
  private readonly lanes: Lane[];
  private readonly height: number;
  private width = 800;
  private drag: { x: number; moves: boolean; from: number; to: number } | null = null;

  constructor(private readonly timeline: Timeline) {
    this.to = timeline.length_ms;
    this.lanes = lanesOf(timeline);
    this.height = (this.lanes.at(-1)?.top ?? 0) + laneHeight + axisHeight + 6;
    this.element.setAttribute("height", String(this.height));
    this.element.setAttribute("aria-label", `Step ${whole(timeline.step)} took ${milliseconds(timeline.length_ms)}. Plus and minus zoom, arrow keys move, 0 shows all.`);
    this.listen();
  }

  resize(width: number): void {
    this.width = width;
    this.draw();
  }

  show(from: number, to: number): void {
    const length = this.timeline.length_ms;
    const span = Math.min(length, Math.max(to - from, length / 2000));
    this.from = Math.max(0, Math.min(from, length - span));
    this.to = this.from + span;
    this.draw();
  }

  zoom(factor: number, around = (this.from + this.to) / 2): void {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  private x(ms: number): number {
    return nameWidth + ((ms - this.from) / (this.to - this.from)) * (this.width - nameWidth - 8);
  }

  private timeAt(event: MouseEvent): number {
    const x = event.clientX - this.element.getBoundingClientRect().left;
    return this.from + ((x - nameWidth) / (this.width - nameWidth - 8)) * (this.to - this.from);
  }

  draw(): void {
    const bottom = this.height - axisHeight;
    const axis = ticks(this.from, this.to).map((value) => {
      const x = this.x(value).toFixed(1);
      return svg("g", {}, svg("line", { x1: x, x2: x, y1: 0, y2: bottom, class: "grid-line" }), svg("text", { x, y: this.height - 6, class: "axis-text", "text-anchor": "middle" }, `${Number(value.toFixed(4))} ms`));
    });
    const names = this.lanes.map((lane, index) => {
      const first = index === 0 || this.lanes[index - 1]!.rank !== lane.rank;
      const y = lane.top + laneHeight / 2 + 4;
      return svg("g", {}, first ? svg("text", { x: 0, y, class: "lane-rank" }, `rank ${lane.rank}`) : null, svg("text", { x: nameWidth - 10, y, class: "axis-text", "text-anchor": "end" }, lane.name === "communication" ? "messages" : lane.name));
    });
    const marks = this.lanes.flatMap((lane) => lane.spans.flatMap((span) => this.mark(lane, span)));
    const clip = svg("clipPath", { id: "timeline-clip" }, svg("rect", { x: nameWidth, y: 0, width: Math.max(0, this.width - nameWidth - 8), height: bottom }));
    this.element.setAttribute("width", String(this.width));
    this.element.replaceChildren(svg("defs", {}, clip), ...axis, ...names, svg("g", { "clip-path": "url(#timeline-clip)" }, ...marks));
  }

  private mark(lane: Lane, span: Span): Node[] {
    if (span.start_ms > this.to || span.start_ms + span.ms < this.from) return [];
    const x = this.x(span.start_ms);
    const width = Math.max(0.75, this.x(span.start_ms + span.ms) - x - 0.5);
    const phase = phaseOf(span);
    const rect = svg("rect", { x: x.toFixed(2), y: lane.top, width: width.toFixed(2), height: laneHeight, rx: Math.min(2, width / 3), class: "span", "data-phase": phase });
    rect.style.fill = `var(--phase-${phase})`;
    rect.addEventListener("mousemove", (event) => {
      if (!this.drag) point(event, this.explain(span));
    });
    rect.addEventListener("mouseleave", pointAway);
    const text = span.name;
    if (width < 7 * text.length + 8) return [rect];
    return [rect, svg("text", { x: x + 5, y: lane.top + laneHeight / 2 + 4, class: `span-text on-${phase}` }, text)];
  }

  private explain(span: Span): string[] {
    const more = [span.bytes !== null ? bytes(span.bytes) : "", span.peer !== null && span.peer >= 0 ? `with rank ${span.peer}` : ""].filter(Boolean).join(", ");
    return [`Rank ${span.rank}: ${span.name}`, `${milliseconds(span.ms)}, from ${milliseconds(span.start_ms)} on`, ...(more ? [more] : [])];
  }

  private listen(): void {
    const band = h("div", { class: "zoom-band" });
    this.element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      pointAway();
      this.drag = { x: event.clientX, moves: event.shiftKey, from: this.from, to: this.to };
      this.element.setPointerCapture(event.pointerId);
      this.element.parentElement?.append(band);
      band.hidden = true;
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!this.drag) return;
      const box = this.element.getBoundingClientRect();
      if (this.drag.moves) {
        const by = ((event.clientX - this.drag.x) / (this.width - nameWidth - 8)) * (this.drag.to - this.drag.from);
        this.show(this.drag.from - by, this.drag.to - by);
        return;
      }
      band.hidden = false;
      band.style.left = `${Math.min(event.clientX, this.drag.x) - box.left}px`;
      band.style.width = `${Math.abs(event.clientX - this.drag.x)}px`;
    });
    this.element.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      band.remove();
      if (!drag || drag.moves || Math.abs(event.clientX - drag.x) < 4) return;
      const other = this.timeAt(event);
      const begin = this.timeAt({ clientX: drag.x } as MouseEvent);
      this.show(Math.max(this.from, Math.min(begin, other)), Math.min(this.to, Math.max(begin, other)));
    });
    this.element.addEventListener("dblclick", () => this.show(0, this.timeline.length_ms));
    this.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event));
    }, { passive: false });
    this.element.addEventListener("keydown", (event) => {
      const step = (this.to - this.from) / 8;
      if (event.key === "+" || event.key === "=") this.zoom(0.5);
      else if (event.key === "-") this.zoom(2);
      else if (event.key === "0" || event.key === "Escape") this.show(0, this.timeline.length_ms);
      else if (event.key === "ArrowRight") this.show(this.from + step, this.to + step);
      else if (event.key === "ArrowLeft") this.show(this.from - step, this.to - step);
      else return;
      event.preventDefault();
    });
  }
}

function control(label: string, text: string, action: () => void): HTMLElement {
  return h("button", { type: "button", class: "small", "aria-label": label, title: label, click: action }, text);
}

export function timelineChart(run: Run, timeline: Timeline): HTMLElement {
  const view = new View(timeline);
  const place = h("div", { class: "timeline-place" });
  place.append(view.element);
  const watcher = new ResizeObserver(() => {
    if (place.isConnected && place.clientWidth > 0) view.resize(place.clientWidth);
  });
  watcher.observe(place);
  const used = new Set(timeline.spans.map(phaseOf));
  return figure({
    title: `Step ${whole(timeline.step)}, ${milliseconds(timeline.length_ms)}`,
    note: "drag to zoom, double-click for all",
    wide: true,
    keys: phaseKeys(run.phases.filter((phase) => used.has(phase))),
    controls: [control("Zoom in", "+", () => view.zoom(0.5)), control("Zoom out", "−", () => view.zoom(2)), control("Show all", "all", () => view.show(0, timeline.length_ms))],
    chart: place,
    table: () => ({
      columns: ["Rank", "Lane", "What", "Phase", "Begins", "Takes"],
      rows: timeline.spans.slice(0, 400).map((span) => [`rank ${span.rank}`, span.lane, span.name, phaseLabel(phaseOf(span)), milliseconds(span.start_ms), milliseconds(span.ms)]),
    }),
  }).element;
}
