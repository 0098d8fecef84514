// What is needed to do the run again: settings, program, machine; and what happened on the way.
import { h } from "../dom";
import type { Run } from "../document";
import { seconds } from "../format";
import { drawTable } from "../charts/figure";
import { section } from "./section";

function text(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function flat(record: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(record).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value) ? flat(value as Record<string, unknown>, `${prefix}${name} `) : [[prefix + name, text(value)] as [string, string]],
  );
}

function list(pairs: [string, string][]): HTMLElement {
  return h("dl", { class: "pairs" }, ...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function provenance(run: Run): HTMLElement {
  const given = new Set(run.configuration_given);
  const all = flat(run.configuration);
  const chosen = all.filter(([name]) => given.has(name));
  const rest = all.filter(([name]) => !given.has(name));
  return section(
    "Provenance",
    "",
    h(
      "div",
      { class: "grid" },
      h("div", { class: "block" }, h("h3", {}, "Settings"), list(chosen.length ? chosen : all), chosen.length && rest.length ? h("details", {}, h("summary", {}, `${rest.length} settings as they are by default`), list(rest)) : null),
      h("div", { class: "block" }, h("h3", {}, "Program and machine"), list([...flat(run.environment), ["run", run.name], ...(run.weights_sha256 ? [["weights SHA-256", run.weights_sha256] as [string, string]] : [])])),
    ),
    run.happenings.length
      ? h("details", { class: "block" }, h("summary", {}, `What happened (${run.happenings.length})`), drawTable({ columns: ["Time", "Rank", "What", ""], rows: run.happenings.map((one) => [seconds(one.t_s), `rank ${one.rank}`, one.kind, one.text]) }, "What happened"))
      : null,
  );
}
