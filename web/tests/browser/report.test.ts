import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { madeUp } from "../made_up";
import { Folder, launch, open, paintedPixels, picture, programs, run } from "./browser";

let browser: Browser;
const folder = new Folder();
before(async () => {
  browser = await launch();
});
after(async () => {
  await browser.close();
  folder.remove();
});

const chart = (page: Page, title: string) => page.locator("figure", { has: page.getByText(title, { exact: true }) });
// Charts are drawn once they have a width.
async function drawn(page: Page): Promise<void> {
  await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.querySelector("canvas")));
}

test("a report opens without complaints, and every chart has marks", async () => {
  const { page, complaints } = await open(browser, folder.report("one.html", madeUp([{ workers: 4, servers: 2 }])));
  await drawn(page);
  assert.equal(await page.title(), "mnist_cnn on mnist – Convoy");
  for (const heading of ["Training", "Where the time went", "Staleness", "Machines and traffic", "Layers", "Provenance"]) await page.getByRole("heading", { name: heading, exact: true }).waitFor();
  const painted = await paintedPixels(page);
  assert.ok(painted.length >= 10, `${painted.length} charts`);
  painted.forEach((pixels, index) => assert.ok(pixels > 400, `chart ${index} has ${pixels} pixels`));
  assert.ok((await page.locator(".ledger .piece").count()) > 30);
  assert.ok((await page.locator(".timeline .span").count()) > 60);
  assert.equal(await page.locator(".columns .column").count(), 5);
  assert.equal(await page.locator("table.layers tbody tr").count(), 9);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("dragging zooms a chart, a double click shows all again", async () => {
  const { page, complaints } = await open(browser, folder.report("zoom.html", madeUp([{}])));
  await drawn(page);
  const plot = chart(page, "Loss").locator(".u-over");
  await plot.scrollIntoViewIfNeeded();
  const whole = await picture(page, "Loss");
  const box = (await plot.boundingBox())!;
  await page.mouse.move(box.x + 0.4 * box.width, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const zoomed = await picture(page, "Loss");
  assert.notEqual(zoomed, whole);
  await plot.dblclick();
  assert.equal(await picture(page, "Loss"), whole);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("keys walk along a curve and zoom", async () => {
  const { page, complaints } = await open(browser, folder.report("keys.html", madeUp([{}])));
  await drawn(page);
  const plot = chart(page, "Loss").locator(".plot");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const tip = chart(page, "Loss").locator(".tip");
  assert.match((await tip.textContent())!, /Step 4.*training, each step/);
  assert.equal(await tip.getAttribute("aria-live"), "polite");
  const whole = await picture(page, "Loss");
  await page.keyboard.press("+");
  assert.notEqual(await picture(page, "Loss"), whole);
  await page.keyboard.press("0");
  assert.equal(await picture(page, "Loss"), whole);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the timeline zooms by buttons, keys and dragging", async () => {
  const { page, complaints } = await open(browser, folder.report("timeline.html", madeUp([{}])));
  const spans = page.locator(".timeline .span");
  await spans.first().waitFor();
  const all = await spans.count();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.getByRole("button", { name: "Zoom in" }).click();
  const some = await spans.count();
  assert.ok(some > 0 && some < all, `${some} of ${all}`);
  await page.locator(".timeline").focus();
  await page.keyboard.press("0");
  assert.equal(await spans.count(), all);
  const box = (await page.locator(".timeline").boundingBox())!;
  await page.mouse.move(box.x + 200, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 320, box.y + 30, { steps: 4 });
  await page.mouse.up();
  assert.ok((await spans.count()) < all);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("dark as the system has it, and as the reader chooses", async () => {
  const address = folder.report("dark.html", madeUp([{}]));
  const dark = await open(browser, address, { dark: true });
  const background = (page: Page): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await background(dark.page), "rgb(15, 17, 21)");
  const { page, complaints } = await open(browser, address);
  await drawn(page);
  assert.equal(await background(page), "rgb(251, 251, 252)");
  const before = await picture(page, "Loss");
  await page.getByRole("button", { name: "Colours: Auto" }).click();
  await page.getByRole("button", { name: "Colours: Light" }).click();
  assert.equal(await background(page), "rgb(15, 17, 21)");
  assert.notEqual(await picture(page, "Loss"), before);
  assert.deepEqual([...complaints, ...dark.complaints], []);
  await page.close();
  await dark.page.close();
});

test("several runs are compared, and each can be looked at", async () => {
  const runs = [{ workers: 1 }, { workers: 1, seed: 2 }, { workers: 2 }, { workers: 2, seed: 2 }, { workers: 4 }, { workers: 2, batch: 256 }];
  const { page, complaints } = await open(browser, folder.report("many.html", madeUp(runs)));
  await drawn(page);
  await page.getByRole("heading", { name: "6 runs side by side" }).waitFor();
  assert.equal(await page.locator("table.runs tbody tr").count(), 6);
  assert.equal(await page.locator("figure .scaling").count(), 4); // speed-up and efficiency, strong and weak
  assert.ok((await page.locator(".scaling .mark").count()) >= 10);
  await chart(page, "Speed-up, strong scaling (batch 128 in all)").getByText("Numbers").click();
  await page.getByText("repeats").or(page.getByRole("columnheader", { name: "Repeats" })).first().waitFor();
  await page.getByLabel("Details of").selectOption({ index: 4 });
  await page.getByText("4 workers · 1 thread each").waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test("markup in a run's name stays text", async () => {
  const name = `<img src=x onerror="alert(1)"></script><script>alert(2)</script>`;
  const { page, complaints } = await open(browser, folder.report("name.html", madeUp([{ name }, { name: `${name}2` }])));
  await page.getByText(name, { exact: false }).first().waitFor();
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("numbers stand behind every chart, and nothing is without a name", async () => {
  const { page, complaints } = await open(browser, folder.report("numbers.html", madeUp([{}])));
  await drawn(page);
  const details = page.locator("figure details.numbers");
  assert.equal(await details.count(), await page.locator("figure").count());
  await chart(page, "Throughput").getByText("Numbers").click();
  await chart(page, "Throughput").locator("tbody tr").nth(20).waitFor();  // rows are made once it is open
  const nameless = await page.$$eval("button, select, [role=img], [role=region]", (elements) => elements.filter((element) => !(element.getAttribute("aria-label") || element.textContent?.trim() || document.querySelector(`label[for="${element.id}"]`))).map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("it prints in light colours, without buttons, on a few pages", async () => {
  const { page, complaints } = await open(browser, folder.report("print.html", madeUp([{}])), { dark: true });
  await drawn(page);
  const pdf = (await page.pdf({ format: "A4", printBackground: true })).toString("latin1");
  const pages = pdf.match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  assert.ok(pages >= 2 && pages <= 9, `${pages} pages`);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".bar").isVisible(), false);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a narrow screen needs no sideways scrolling", async () => {
  const { page, complaints } = await open(browser, folder.report("narrow.html", madeUp([{}])), { width: 420 });
  await drawn(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what convoy report writes opens, and is small", async () => {
  const store = folder.file("store.db");
  run(programs.store, store, "6", "5000");
  run(programs.convoy, "report", "--store", store, "1", "2", "3", "4", "5", "6", "-o", folder.file("real.html"));
  assert.ok(statSync(folder.file("real.html")).size < 5_000_000);
  const { page, complaints } = await open(browser, `file://${folder.file("real.html")}`);
  await drawn(page);
  await page.getByRole("heading", { name: "6 runs side by side" }).waitFor();
  for (const pixels of await paintedPixels(page)) assert.ok(pixels > 200);
  assert.deepEqual(complaints, []);
  await page.close();
});
