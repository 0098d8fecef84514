// One small box for the whole page that says more about the mark under the mouse.
import { h } from "../dom";

let box: HTMLElement | null = null;

function shown(): HTMLElement {
  if (!box?.isConnected) {
    box = h("div", { class: "tip floating", "aria-hidden": "true" });
    document.body.append(box);
  }
  return box;
}

function place(tip: HTMLElement, event: MouseEvent): void {
  const right = event.clientX > window.innerWidth / 2;
  tip.style.left = right ? "" : `${event.clientX + 14}px`;
  tip.style.right = right ? `${document.documentElement.clientWidth - event.clientX + 14}px` : "";
  tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
}

// The first line is the head; empty: nothing is shown.
export function point(event: MouseEvent, lines: string[]): void {
  const tip = shown();
  tip.hidden = lines.length === 0;
  if (tip.hidden) return;
  tip.replaceChildren(...lines.map((line, index) => h("div", { class: index === 0 ? "tip-head" : null }, line)));
  place(tip, event);
}

export function pointAway(): void {
  if (box) box.hidden = true;
}

export function pointed(mark: Element, lines: () => string[]): void {
  mark.addEventListener("mousemove", (event) => point(event as MouseEvent, lines()));
  mark.addEventListener("mouseleave", pointAway);
}
