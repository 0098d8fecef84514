// The first thing a reader sees: what run it was, how it went, the numbers that matter.
import { h } from "../dom";
import type { Run, Summary } from "../document";
import { count, counted, fixed, moment, percent, seconds, short, whole } from "../format";

export const stateLabels: Record<string, string> = {
  running: "running",
  finished: "finished",
  interrupted: "stopped",
  failed: "failed",
  lost: "lost",
};

export function stateMark(state: string): HTMLElement {
  return h("span", { class: `state ${state in stateLabels ? state : "lost"}` }, stateLabels[state] ?? state);
}

export function runTitle(run: Summary): string {
  return `${run.model} on ${run.data}`;
}

function tile(label: string, value: string, more: string): HTMLElement {
  return h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, h("span", { class: "value" }, value), h("span", { class: "more" }, more)));
}

export function workersText(run: Summary): string {
  const servers = run.servers > 0 ? ` + ${counted(run.servers, "server")}` : "";
  return counted(run.workers, "worker") + servers;
}

// What the program says in the middle of a line, as a sentence of its own.
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function facts(run: Run): string {
  const way = run.workers > 1 || run.servers > 0 ? [run.sync === "allreduce" ? `${run.algorithm === "auto" ? "" : `${run.algorithm} `}all-reduce` : run.sync, run.transport, run.wire === "f32" ? "" : `${run.wire} on the wire`] : [];
  return [workersText(run), `${counted(run.threads, "thread")} each`, ...way, run.precision, `batch ${whole(run.batch)}`, `seed ${run.seed}`, run.world === "sim" ? "simulated" : ""].filter(Boolean).join(" · ");
}

export function headline(run: Run): HTMLElement {
  const data = run.data_seen;
  const host = run.ranks[0]?.host ?? "";
  return h(
    "header",
    { class: "run-head" },
    h("div", { class: "run-title" }, h("h1", {}, runTitle(run)), stateMark(run.state)),
    h("p", { class: "facts" }, facts(run)),
    h("p", { class: "facts quiet" }, [run.name, moment(run.started), host ? `on ${host}` : ""].filter(Boolean).join(" · ")),
    run.reason ? h("p", { class: "reason", role: "alert" }, run.reason) : null,
    run.verdict ? h("p", { class: "verdict" }, sentence(run.verdict)) : null,
    h(
      "dl",
      { class: "tiles" },
      tile("Test accuracy", percent(run.test_accuracy, 2), `loss ${short(run.test_loss)}`),
      tile("Throughput", run.images_per_s === null ? "–" : whole(run.images_per_s), "images/s"),
      tile("Wall time", seconds(run.wall_s), `${counted(run.steps, "step")}, ${run.epochs_done}/${counted(run.epochs, "epoch")}`),
      tile("Communication", percent(run.communication_share), "of training, not hidden"),
      tile("Data, last epoch", data ? whole(data.seen) : "–", data ? `seen, ${whole(data.missing)} missing, ${whole(data.twice)} twice` : ""),
      tile("Parameters", count(run.parameters), run.train_loss === null ? "" : `training loss ${fixed(run.train_loss, 4)}`),
    ),
  );
}
