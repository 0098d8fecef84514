// Light or dark: as the reader's system has it, or as the reader chose; paper is light.
import type { Theme } from "./palette";

export type Choice = "auto" | Theme;
const key = "convoy-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let choice: Choice = stored();
let printing = false;

function stored(): Choice {
  try {
    const text = localStorage.getItem(key);
    return text === "light" || text === "dark" ? text : "auto";
  } catch {
    return "auto"; // a page from a file may have no storage
  }
}

export function theme(): Theme {
  if (printing) return "light";
  return choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
}

export function themeChoice(): Choice {
  return choice;
}

export function setTheme(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem(key, next);
  } catch {
    // lasts as long as the page
  }
  apply();
}

// Called whenever colours change; the returned function ends that.
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener();
}

function print(on: boolean): void {
  printing = on;
  apply();
}

export function startTheme(): void {
  dark.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  apply();
}

// A colour of styles.css as it is now, for canvases.
export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
