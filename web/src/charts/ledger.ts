// Where each rank's time went: one bar per rank, as long as its wall time, cut into phases.
import { h } from "../dom";
import type { Rank, Run } from "../document";
import { percent, seconds } from "../format";
import { phaseLabel } from "../palette";
import { figure, type Key } from "./figure";
import { pointed } from "./pointed";

function phaseSwatch(phase: string): HTMLElement {
  const mark = h("i", { class: "box", "aria-hidden": "true" });
  mark.style.background = `var(--phase-${phase}, var(--phase-other))`;
  return mark;
}

export function phaseKeys(phases: string[]): Key[] {
  return phases.map((phase) => ({ label: phaseLabel(phase), swatch: phaseSwatch(phase) }));
}

// Phases that took any time on any rank, in the order of the document.
export function usedPhases(run: Run): string[] {
  return run.phases.filter((_, index) => run.ranks.some((rank) => (rank.phases_s[index] ?? 0) > 0.0005 * rank.wall_s));
}

function waitLines(rank: Rank): string[] {
  const whom = new Map<number, number>();
  for (const wait of rank.waits) whom.set(wait.rank, (whom.get(wait.rank) ?? 0) + wait.seconds);
  return [...whom.entries()].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([other, time]) => `${other < 0 ? "not known for whom" : `for rank ${other}`}: ${seconds(time)}`);
}

function bar(run: Run, rank: Rank, longest: number): HTMLElement {
  const pieces = run.phases.flatMap((phase, index) => {
    const time = rank.phases_s[index] ?? 0;
    if (time <= 0) return [];
    const share = time / rank.wall_s;
    const piece = h("div", { class: "piece", "data-phase": phase }, share > 0.075 ? h("span", {}, percent(share, 0)) : null);
    piece.style.flexGrow = String(time);
    piece.style.background = `var(--phase-${phase}, var(--phase-other))`;
    pointed(piece, () => [`Rank ${rank.rank}: ${phaseLabel(phase)}`, `${seconds(time)}, ${percent(share)} of its time`, ...(phase === "wait" ? waitLines(rank) : [])]);
    return [piece];
  });
  const strip = h("div", { class: "strip" }, ...pieces);
  strip.style.width = `${(100 * rank.wall_s) / longest}%`;
  const biggest = run.phases.map((phase, index) => ({ phase, time: rank.phases_s[index] ?? 0 })).sort((a, b) => b.time - a.time).slice(0, 3);
  return h(
    "div",
    { class: "ledger-row", role: "img", "aria-label": `Rank ${rank.rank}, ${seconds(rank.wall_s)}: ${biggest.map((one) => `${phaseLabel(one.phase)} ${percent(one.time / rank.wall_s)}`).join(", ")}` },
    h("div", { class: "ledger-name" }, `${rank.role === "server" ? "server" : "rank"} ${rank.rank}`, h("small", {}, rank.host)),
    h("div", { class: "ledger-bar" }, strip),
    h("div", { class: "ledger-time" }, seconds(rank.wall_s)),
  );
}

export function ledgerChart(run: Run): HTMLElement {
  const longest = Math.max(...run.ranks.map((rank) => rank.wall_s), 1e-9);
  const phases = usedPhases(run);
  return figure({
    title: "Time of each rank",
    note: "every nanosecond in one phase",
    wide: true,
    keys: phaseKeys(phases),
    chart: h("div", { class: run.ranks.length > 12 ? "ledger dense" : "ledger" }, ...run.ranks.map((rank) => bar(run, rank, longest))),
    table: () => ({
      columns: ["Rank", "Wall time", ...phases.map(phaseLabel)],
      rows: run.ranks.map((rank) => [
        `${rank.role} ${rank.rank}`,
        seconds(rank.wall_s),
        ...phases.map((phase) => {
          const time = rank.phases_s[run.phases.indexOf(phase)] ?? 0;
          return `${seconds(time)} (${percent(time / rank.wall_s)})`;
        }),
      ]),
    }),
  }).element;
}
