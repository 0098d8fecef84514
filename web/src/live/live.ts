// The live view: the list of runs beside the report of those that are chosen, which follows while they run.
import { bar } from "../bar";
import { h } from "../dom";
import type { Run, Summary } from "../document";
import { comparison } from "../sections/comparison";
import { runTitle } from "../sections/headline";
import { runView, type RunView } from "../report";
import { Feed } from "./feed";
import { runList } from "./list";
import { stopButton } from "./stop";

const mostCompared = 24;
const least_ms = 1500; // between two documents of a run

// The runs in the address, so that it can be kept and sent.
function fromAddress(): string[] {
  const found = /^#runs=([\d,]+)$/.exec(window.location.hash);
  return found ? found[1]!.split(",").filter(Boolean).slice(0, mostCompared) : [];
}

class Live {
  private readonly feed = new Feed();
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly connection = h("span", { class: "connection", role: "status" });
  private readonly content = h("main", { id: "content" });
  private readonly list = runList((ids) => this.choose(ids));
  private readonly stop = stopButton((id) => this.feed.stop(id), (text) => (this.note.textContent = text));
  private chosen: string[] = fromAddress();
  private view: RunView | null = null;
  private shown: string[] = []; // what `content` shows
  private turn = 0; // counts choices: answers to older ones are not shown
  private next_ms = 0; // before which no document is fetched again
  private waiting = false;

  start(page: HTMLElement): void {
    document.title = "Convoy";
    page.append(bar(this.connection, this.stop.element), h("div", { class: "live" }, this.list.element, h("div", { class: "live-main" }, this.note, this.content)));
    document.body.classList.add("wide");
    this.feed.onChange((changed) => this.changed(changed));
    window.addEventListener("hashchange", () => {
      if (fromAddress().join() !== this.chosen.join()) this.choose(fromAddress());
    });
    this.feed.start().catch((error: Error) => {
      this.note.textContent = error.message;
      this.note.classList.add("reason");
    });
  }

  private choose(ids: string[]): void {
    this.chosen = ids.slice(0, mostCompared);
    this.note.textContent = "";
    window.history.replaceState(null, "", `#runs=${this.chosen.join(",")}`);
    this.draw();
    void this.show();
  }

  private changed(ids: string[]): void {
    const runs = this.feed.sorted();
    if (runs.length > 0 && this.chosen.every((id) => !this.feed.runs.has(id))) {
      const first = runs.find((run) => run.state === "running") ?? runs[0];
      this.chosen = first ? [first.id] : [];
    }
    this.draw();
    if (this.shown.join() !== this.chosen.join()) void this.show();
    else if (ids.some((id) => this.chosen.includes(id))) this.refreshSoon();
  }

  private draw(): void {
    const texts = { connecting: "connecting", live: "live", lost: "connection lost, trying again" };
    this.connection.textContent = texts[this.feed.connection];
    this.connection.dataset.state = this.feed.connection;
    this.list.update(this.feed.sorted(), this.chosen);
    const summaries = this.chosen.map((id) => this.feed.runs.get(id)).filter((run): run is Summary => run !== undefined);
    this.stop.update(summaries.length === 1 ? summaries[0] : undefined);
    if (this.feed.runs.size === 0 && this.feed.connection !== "connecting") this.content.replaceChildren(h("p", { class: "lead" }, "No run is recorded yet: convoy train makes the first one."));
  }

  // Fetches and shows what is chosen.
  private async show(): Promise<void> {
    const turn = ++this.turn;
    const ids = this.chosen;
    if (ids.length === 0) return;
    this.shown = ids;
    const begin = performance.now();
    const found = await Promise.all(ids.map((id) => this.feed.document(id).catch((error: Error) => error)));
    if (turn !== this.turn) return;
    this.next_ms = performance.now() + Math.max(least_ms, 8 * (performance.now() - begin));
    const runs = found.filter((one): one is Run => !(one instanceof Error));
    const failed = found.find((one): one is Error => one instanceof Error);
    if (failed) this.note.textContent = failed.message;
    if (runs.length === 1 && this.view?.element.dataset.run === runs[0]!.id && this.content.contains(this.view.element)) this.view.update(runs[0]!);
    else this.fill(runs);
  }

  private fill(runs: Run[]): void {
    this.view = runs.length === 1 ? runView(runs[0]!) : null;
    if (runs.length > 1) this.content.replaceChildren(comparison(runs, (run) => this.choose([run.id])));
    else this.content.replaceChildren(...(this.view ? [this.view.element] : []));
    document.title = runs.length === 1 ? `${runTitle(runs[0]!)} – Convoy` : "Convoy";
  }

  // At most so often that fetching takes a small part of the time.
  private refreshSoon(): void {
    if (this.waiting) return;
    this.waiting = true;
    window.setTimeout(() => {
      this.waiting = false;
      void this.show();
    }, Math.max(0, this.next_ms - performance.now()));
  }
}

export function live(page: HTMLElement): void {
  new Live().start(page);
}
