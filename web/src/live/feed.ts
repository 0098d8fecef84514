// What the server knows, kept up to date: the list of runs by a stream of changes, documents when asked for.
import type { Run, Summary } from "../document";

export type Connection = "connecting" | "live" | "lost";

async function fetchJson<Answer>(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(path, init);
  const body: unknown = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error((body as { error?: string }).error ?? `the server answered ${response.status}`);
  return body as Answer;
}

export class Feed {
  readonly runs = new Map<string, Summary>();
  connection: Connection = "connecting";
  private readonly listeners = new Set<(changed: string[]) => void>();

  // Called with the ids of runs that changed; with none when the connection did.
  onChange(listener: (changed: string[]) => void): void {
    this.listeners.add(listener);
  }

  async start(): Promise<void> {
    const source = new EventSource("api/events");
    let whole = true; // the next event has all runs
    source.addEventListener("open", () => {
      whole = true;
      this.set("live");
    });
    source.addEventListener("error", () => this.set("lost")); // the browser tries again by itself
    source.addEventListener("runs", (event) => {
      this.set("live");
      if (whole) this.runs.clear();
      whole = false;
      this.take(JSON.parse((event as MessageEvent<string>).data) as Summary[]);
    });
    // The stream's first event has all runs. Where it is refused, an ordinary request says why, or does instead.
    await new Promise<void>((resolve) => {
      source.addEventListener("runs", () => resolve(), { once: true });
      source.addEventListener("error", () => resolve(), { once: true });
    });
    if (this.connection === "live") return;
    const list = await fetchJson<{ runs: Summary[] }>("api/runs");
    this.take(list.runs);
  }

  document(id: string): Promise<Run> {
    return fetchJson<Run>(`api/runs/${encodeURIComponent(id)}`);
  }

  async stop(id: string): Promise<void> {
    await fetchJson(`api/runs/${encodeURIComponent(id)}/stop`, { method: "POST", headers: { "X-Convoy": "stop" } });
  }

  // Newest first.
  sorted(): Summary[] {
    return [...this.runs.values()].sort((a, b) => b.started.localeCompare(a.started) || Number(b.id) - Number(a.id));
  }

  private take(list: Summary[]): void {
    for (const run of list) {
      if ((run.state as string) === "deleted") this.runs.delete(run.id);
      else this.runs.set(run.id, run);
    }
    this.tell(list.map((run) => run.id));
  }

  private set(next: Connection): void {
    if (next === this.connection) return;
    this.connection = next;
    this.tell([]);
  }

  private tell(changed: string[]): void {
    for (const listener of this.listeners) listener(changed);
  }
}
