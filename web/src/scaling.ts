// How runs with different numbers of workers compare. Pure.
import type { Summary } from "./document";

export interface Spread {
  median: number;
  low: number;
  high: number;
  count: number;
}

export interface ScalingPoint {
  workers: number;
  images_per_s: Spread;
  speedup: Spread; // against the fewest workers of the series, times their number
  efficiency: Spread;
}

export interface Scaling {
  kind: "strong" | "weak"; // the same batch for all together, or for each
  title: string;
  batch: number; // of all, or of each
  points: ScalingPoint[]; // by workers, at least two
}

export function spread(values: number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, low: sorted[0]!, high: sorted[sorted.length - 1]!, count: sorted.length };
}

function times(one: Spread, factor: number): Spread {
  return { median: one.median * factor, low: one.low * factor, high: one.high * factor, count: one.count };
}

// What must be equal for runs to be points of one line. One worker has no algorithm, transport or wire format.
function work(run: Summary): string[] {
  return [run.model, run.data, run.precision, `${run.threads} threads`, run.world];
}
function way(run: Summary): string[] {
  return [run.sync, run.servers > 0 ? `${run.servers} servers` : "", run.algorithm, run.transport, run.wire === "f32" ? "" : run.wire].filter((text) => text !== "" && text !== "auto");
}

function points(runs: Summary[]): ScalingPoint[] {
  const byWorkers = new Map<number, number[]>();
  for (const run of runs)
    if (run.images_per_s !== null && run.images_per_s > 0) byWorkers.set(run.workers, [...(byWorkers.get(run.workers) ?? []), run.images_per_s]);
  const counts = [...byWorkers.keys()].sort((a, b) => a - b);
  const least = counts[0];
  if (least === undefined) return [];
  const base = spread(byWorkers.get(least)!).median / least; // of one worker
  return counts.map((workers) => {
    const speed = spread(byWorkers.get(workers)!);
    return { workers, images_per_s: speed, speedup: times(speed, 1 / base), efficiency: times(speed, 1 / (base * workers)) };
  });
}

export function scalings(runs: Summary[]): Scaling[] {
  const result: Scaling[] = [];
  const groups = new Map<string, { kind: "strong" | "weak"; title: string; batch: number; runs: Summary[] }>();
  const several = runs.filter((run) => run.workers > 1);
  for (const run of several)
    for (const kind of ["strong", "weak"] as const) {
      const batch = kind === "strong" ? run.batch : run.batch / run.workers;
      const title = [run.model, run.data, run.precision, ...way(run)].join(", ");
      const key = JSON.stringify([kind, work(run), way(run), batch]);
      const group = groups.get(key) ?? { kind, title, batch, runs: runs.filter((one) => one.workers === 1 && one.batch === batch && String(work(one)) === String(work(run))) };
      group.runs.push(run);
      groups.set(key, group);
    }
  for (const group of groups.values()) {
    const line = points(group.runs);
    if (line.length > 1) result.push({ kind: group.kind, title: group.title, batch: group.batch, points: line });
  }
  return result.sort((a, b) => a.kind.localeCompare(b.kind) || b.points.length - a.points.length);
}
