import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, percent, seconds, short, tick, whole } from "../../src/format";
import { phaseOf, ticks } from "../../src/charts/timeline";

test("numbers as people read them", () => {
  assert.equal(whole(60000), "60,000");
  assert.equal(whole(null), "–");
  assert.equal(short(0.04561), "0.0456");
  assert.equal(short(2.345), "2.35");
  assert.equal(short(12345), "12,345");
  assert.equal(short(NaN), "–");
  assert.equal(percent(0.98734, 2), "98.73 %");
  assert.equal(count(690590), "691 k");
  assert.equal(bytes(2_760_000), "2.76 MB");
});

test("times from microseconds to hours", () => {
  assert.equal(seconds(0.00041), "410 µs");
  assert.equal(seconds(0.0063), "6.30 ms");
  assert.equal(seconds(0.25), "250 ms");
  assert.equal(seconds(7.4321), "7.43 s");
  assert.equal(seconds(600), "10:00 min");
  assert.equal(seconds(3 * 3600 + 62), "3:01:02 h");
  assert.equal(seconds(0), "0 s");
});

test("ticks have no digits that say nothing", () => {
  assert.equal(tick.clock(0.5), "0.5 s");
  assert.equal(tick.clock(2), "2 s");
  assert.equal(tick.clock(150), "2:30");
  assert.equal(tick.bytes(20e6), "20 MB");
  assert.equal(tick.bytes(1.5e6), "1.5 MB");
  assert.equal(tick.rate(200e6), "200 MB/s");
  assert.deepEqual(ticks(0, 9.4), [0, 2, 4, 6, 8]);
  assert.equal(ticks(3.1, 3.2).length, 6);
});

test("a span has the colour of what it does", () => {
  const span = { rank: 0, start_ms: 0, ms: 1, bytes: null, peer: null };
  assert.equal(phaseOf({ ...span, lane: "compute", name: "forward conv1" }), "forward");
  assert.equal(phaseOf({ ...span, lane: "compute", name: "wait" }), "wait");
  assert.equal(phaseOf({ ...span, lane: "communication", name: "all-reduce" }), "communication");
  assert.equal(phaseOf({ ...span, lane: "optimizer", name: "adam conv1" }), "update");
  assert.equal(phaseOf({ ...span, lane: "compute", name: "something" }), "other");
});
