import assert from "node:assert/strict";
import { test } from "node:test";
import type { Summary } from "../../src/document";
import { scalings, spread } from "../../src/scaling";
import { madeUpRun } from "../made_up";

function run(workers: number, images_per_s: number | null, more: Partial<Summary> = {}): Summary {
  return { ...madeUpRun({ workers }), images_per_s, ...more };
}

test("a spread has the median and the ends", () => {
  assert.deepEqual(spread([3, 1, 2]), { median: 2, low: 1, high: 3, count: 3 });
  assert.deepEqual(spread([4, 1, 2, 3]), { median: 2.5, low: 1, high: 4, count: 4 });
});

test("the same batch for all is strong scaling, against one worker", () => {
  const [line, ...rest] = scalings([run(1, 100), run(2, 150), run(4, 200)]);
  assert.equal(rest.length, 0);
  assert.equal(line?.kind, "strong");
  assert.equal(line.batch, 128);
  assert.deepEqual(line.points.map((point) => point.speedup.median), [1, 1.5, 2]);
  assert.deepEqual(line.points.map((point) => point.efficiency.median), [1, 0.75, 0.5]);
});

test("the same batch for each is weak scaling", () => {
  const lines = scalings([run(1, 100, { batch: 64 }), run(2, 190, { batch: 128 }), run(4, 360, { batch: 256 })]);
  assert.deepEqual(lines.map((line) => line.kind), ["weak"]);
  assert.equal(lines[0]!.batch, 64);
  assert.deepEqual(lines[0]!.points.map((point) => point.efficiency.median.toFixed(3)), ["1.000", "0.950", "0.900"]);
});

test("repeats are one point with a spread", () => {
  const [line] = scalings([run(1, 100), run(1, 110, { seed: 2 }), run(1, 90, { seed: 3 }), run(2, 150), run(2, 170, { seed: 2 })]);
  assert.deepEqual(line?.points.map((point) => point.images_per_s.count), [3, 2]);
  assert.equal(line?.points[1]!.speedup.median, 1.6);
  assert.equal(line?.points[1]!.speedup.low, 1.5);
});

test("without one worker the fewest are the base", () => {
  const [line] = scalings([run(2, 200), run(4, 300)]);
  assert.deepEqual(line?.points.map((point) => point.speedup.median), [2, 3]);
});

test("other networks, algorithms and runs without a speed are not mixed", () => {
  assert.equal(scalings([run(1, 100), run(2, 150, { model: "vgg16" })]).length, 0);
  assert.equal(scalings([run(1, 100), run(2, null)]).length, 0);
  assert.equal(scalings([]).length, 0);
  const lines = scalings([run(1, 100), run(2, 150), run(2, 180, { algorithm: "tree" })]);
  assert.equal(lines.length, 2);
  assert.ok(lines.every((line) => line.points.length === 2));
});
