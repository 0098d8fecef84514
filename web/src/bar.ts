// The bar at the top of the page.
import { h, svg } from "./dom";
import { setTheme, themeChoice, type Choice } from "./theme";

const names: Record<Choice, string> = { auto: "Auto", light: "Light", dark: "Dark" };

function themeButton(): HTMLElement {
  const order: Choice[] = ["auto", "light", "dark"];
  const label = (): string => `Colours: ${names[themeChoice()]}`;
  const button = h("button", { type: "button", class: "small", id: "theme", click: () => {
    setTheme(order[(order.indexOf(themeChoice()) + 1) % order.length]!);
    button.textContent = label();
  } }, label());
  return button;
}

function mark(): SVGElement {
  const cart = (x: number): SVGElement => svg("rect", { x, y: 5, width: 6, height: 6, rx: 1.5, fill: "currentColor" });
  return svg("svg", { width: 26, height: 16, viewBox: "0 0 26 16", "aria-hidden": "true" }, cart(0), cart(10), cart(20), svg("path", { d: "M6 8h4M16 8h4", stroke: "currentColor", "stroke-width": 1.5 }));
}

export function bar(...more: (HTMLElement | null)[]): HTMLElement {
  return h(
    "div",
    { class: "bar" },
    h("a", { class: "skip", href: "#content" }, "To the content"),
    h("span", { class: "brand" }, mark(), "Convoy"),
    h("span", { class: "bar-more" }, ...more, themeButton(), h("button", { type: "button", class: "small", click: () => window.print() }, "Print")),
  );
}
