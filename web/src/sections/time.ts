// Where the time went: ledger, who waited for whom, one step as a timeline.
import { h } from "../dom";
import type { Run } from "../document";
import { percent, seconds, whole } from "../format";
import { drawTable } from "../charts/figure";
import { ledgerChart } from "../charts/ledger";
import { timelineChart } from "../charts/timeline";
import { section } from "./section";
import { idleness } from "./staleness";

interface Waiting {
  rank: number;
  other: number;
  layer: string;
  seconds: number;
  count: number;
  share: number;
}

export function longestWaits(run: Run, most: number): Waiting[] {
  return run.ranks
    .flatMap((rank) => rank.waits.map((wait) => ({ rank: rank.rank, other: wait.rank, layer: wait.layer, seconds: wait.seconds, count: wait.count, share: wait.seconds / rank.wall_s })))
    .filter((wait) => wait.share > 0.001)
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, most);
}

function waits(run: Run): HTMLElement | null {
  const list = longestWaits(run, 8);
  if (list.length === 0) return null;
  return h(
    "div",
    { class: "block" },
    h("h3", {}, "Longest waits"),
    drawTable(
      {
        columns: ["Who", "For", "Before layer", "Time", "Of its time", "Times"],
        rows: list.map((wait) => [`rank ${wait.rank}`, wait.other < 0 ? "not known" : `rank ${wait.other}`, wait.layer || "(end of epoch, exchange)", seconds(wait.seconds), percent(wait.share), whole(wait.count)]),
      },
      "Longest waits",
    ),
  );
}

function latencies(run: Run): HTMLElement | null {
  if (run.latencies.length === 0) return null;
  return h(
    "div",
    { class: "block" },
    h("h3", {}, "Operations between ranks"),
    drawTable(
      {
        columns: ["Operation", "Count", "Mean", "Least", "Most", "Throughput"],
        rows: run.latencies.map((one) => [one.operation, whole(one.count), seconds(one.mean_s), seconds(one.least_s), seconds(one.most_s), one.bytes > 0 && one.mean_s > 0 ? `${(one.bytes / (one.count * one.mean_s) / 1e9).toFixed(2)} GB/s` : "–"]),
      },
      "Operations between ranks",
    ),
  );
}

export function time(run: Run): HTMLElement | null {
  if (run.ranks.length === 0) return null;
  const tables = [waits(run), idleness(run), latencies(run)].filter((one): one is HTMLElement => one !== null);
  return section(
    "Where the time went",
    "",
    ledgerChart(run),
    run.timeline && run.timeline.spans.length > 0 ? timelineChart(run, run.timeline) : null,
    tables.length ? h("div", { class: "grid" }, ...tables) : null,
  );
}
