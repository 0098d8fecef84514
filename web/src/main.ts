// The page: a report where it has a document, the live view where it has none.
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { bar } from "./bar";
import { h } from "./dom";
import type { Document } from "./document";
import { live } from "./live/live";
import { phaseColours, seriesColours } from "./palette";
import { report } from "./report";
import { onTheme, startTheme, theme } from "./theme";

const format = 1;

// The palette as variables, so that marks that are elements change their colour by themselves.
function colours(): void {
  const style = document.documentElement.style;
  for (const [phase, colour] of Object.entries(phaseColours[theme()])) style.setProperty(`--phase-${phase}`, colour);
  seriesColours[theme()].forEach((colour, index) => style.setProperty(`--series-${index}`, colour));
}

function start(): void {
  onTheme(colours);
  startTheme();
  const page = document.getElementById("page")!;
  const embedded: Document | null = JSON.parse(document.getElementById("convoy-document")?.textContent || "null");
  if (!embedded) {
    live(page);
    return;
  }
  page.append(bar());
  if (embedded.format !== format) page.append(h("main", { id: "content" }, h("p", { class: "reason" }, `This page shows documents of format ${format}, and this one has format ${embedded.format}.`)));
  else page.append(report(embedded));
}

start();
