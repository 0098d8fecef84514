// A part of the page with a heading.
import { h, unique } from "../dom";

export function section(title: string, lead: string, ...children: (HTMLElement | null)[]): HTMLElement {
  const id = unique("section");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), lead ? h("p", { class: "lead" }, lead) : null, ...children);
}

export function grid(...children: HTMLElement[]): HTMLElement {
  return h("div", { class: "grid" }, ...children);
}
