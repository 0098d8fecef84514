// How training went: loss, accuracy, speed.
import type { Run } from "../document";
import { percent, short, whole } from "../format";
import { lineChart, type Curve, type LineChart } from "../charts/line";
import * as scales from "../charts/scales";
import { grid, section } from "./section";

function lossCurves(run: Run): Curve[] {
  const steps = run.steps_table;
  const epochs = run.epochs_table;
  const curves: Curve[] = [{ label: "training, each step", x: steps.step, y: steps.loss, low: steps.loss_min, high: steps.loss_max, colour: 0 }];
  if (epochs.test_loss.some((value) => value !== null)) curves.push({ label: "test, each epoch", x: epochs.step, y: epochs.test_loss, colour: 1, points: true });
  return curves;
}

function accuracyCurves(run: Run): Curve[] {
  const steps = run.steps_table;
  const epochs = run.epochs_table;
  const curves: Curve[] = [{ label: "training", x: steps.step, y: steps.accuracy, colour: 0 }];
  if (epochs.test_accuracy.some((value) => value !== null)) curves.push({ label: "test, each epoch", x: epochs.step, y: epochs.test_accuracy, colour: 1, points: true });
  return curves;
}

function speedCurves(run: Run): Curve[] {
  const steps = run.steps_table;
  return [{ label: "images/s", x: steps.t_s, y: steps.images_per_s, low: steps.images_per_s_min, high: steps.images_per_s_max, colour: 2 }];
}

const firstKnown = (values: (number | null)[]): number | null => values.find((value) => value !== null) ?? null;
const lastKnown = (values: (number | null)[]): number | null => [...values].reverse().find((value) => value !== null) ?? null;

export interface Training {
  element: HTMLElement;
  update(run: Run): void;
}

export function training(run: Run): Training {
  const steps = run.steps_table;
  const charts: { chart: LineChart; curves: (run: Run) => Curve[] }[] = [];
  const add = (chart: LineChart, curves: (run: Run) => Curve[]): HTMLElement => {
    charts.push({ chart, curves });
    return chart.element;
  };
  const x = scales.step;
  const element = section(
    "Training",
    "",
    grid(
      add(lineChart({ title: "Loss", x, y: scales.loss, logarithmic: true, together: "step", describe: `Training loss goes from ${short(firstKnown(steps.loss))} to ${short(lastKnown(steps.loss))} in ${whole(run.steps)} steps.` }, lossCurves(run)), lossCurves),
      add(lineChart({ title: "Accuracy", x, y: { ...scales.share, most: 1 }, together: "step", describe: `Test accuracy ends at ${percent(run.test_accuracy, 2)}.` }, accuracyCurves(run)), accuracyCurves),
    ),
    add(lineChart({ title: "Throughput", x: scales.time, y: { ...scales.amount, label: "images/s, all workers", fromZero: true }, together: "time", height: 170, wide: true, describe: `On average ${whole(run.images_per_s)} images per second.` }, speedCurves(run)), speedCurves),
  );
  return {
    element,
    update(next) {
      for (const { chart, curves } of charts) chart.update(curves(next));
    },
  };
}
