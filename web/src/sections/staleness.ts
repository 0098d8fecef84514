// What a parameter server adds: how old gradients were when they were applied, and how idle workers were.
import { h } from "../dom";
import type { Run, Staleness } from "../document";
import { percent, whole } from "../format";
import { figure } from "../charts/figure";
import { lineChart } from "../charts/line";
import * as scales from "../charts/scales";
import { pointed } from "../charts/pointed";
import { grid, section } from "./section";

function histogram(staleness: Staleness): HTMLElement {
  const most = Math.max(1, ...staleness.counts);
  const total = Math.max(1, staleness.counts.reduce((sum, value) => sum + value, 0));
  const bars = staleness.counts.map((value, behind) => {
    const bar = h("div", { class: "column" });
    bar.style.height = `${(100 * value) / most}%`;
    const cell = h("div", { class: "column-cell" }, bar, h("small", {}, String(behind)));
    pointed(cell, () => [`${behind} versions behind`, `${whole(value)} gradients, ${percent(value / total)}`]);
    return cell;
  });
  return figure({
    title: "Staleness of gradients",
    note: "versions behind when applied",
    chart: h("div", { class: "columns", role: "img", "aria-label": `Staleness: ${staleness.counts.map((value, behind) => `${behind} behind ${percent(value / total)}`).join(", ")}` }, ...bars),
    table: () => ({ columns: ["Versions behind", "Gradients", "Share"], rows: staleness.counts.map((value, behind) => [String(behind), whole(value), percent(value / total)]) }),
  }).element;
}

// Null where the ranks do not wait for one another.
export function idleness(run: Run): HTMLElement | null {
  const idle = run.idleness.filter((one) => one.share.some((value) => value !== null));
  if (idle.length === 0) return null;
  const curves = idle.slice(0, 24).map((one, index) => ({ label: `rank ${one.rank}`, x: one.epoch, y: one.share, colour: index, points: true, dashed: false }));
  const y = { ...scales.share, label: "share of training time", fromZero: true };
  return lineChart({ title: "Idleness of workers", x: scales.epoch, y, height: 180, describe: "Share of its training time in which each worker waited." }, curves).element;
}

export function staleness(run: Run): HTMLElement | null {
  const found = run.staleness;
  if (!found || found.counts.length === 0) return null;
  const byEpoch = lineChart({ title: "Staleness by epoch", x: scales.epoch, y: { ...scales.number, fromZero: true }, height: 180, describe: "Mean and greatest staleness of each epoch." }, [
    { label: "mean", x: found.epoch, y: found.mean, colour: 0, points: true, dashed: false },
    { label: "greatest", x: found.epoch, y: found.max, colour: 3, points: true, dashed: true },
  ]);
  return section("Staleness", "", grid(histogram(found), byEpoch.element));
}
