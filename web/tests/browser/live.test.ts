import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { Folder, launch, open, paintedPixels, picture, programs, run, serve } from "./browser";

let browser: Browser;
let address: string;
let server: ChildProcess;
const folder = new Folder();
const store = folder.file("store.db");
before(async () => {
  run(programs.store, store, "6", "200");
  ({ address, process: server } = await serve(store));
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.kill("SIGINT");
  folder.remove();
});

test("the live page lists runs, shows the newest, and follows", async () => {
  const { page, complaints } = await open(browser, address);
  await page.getByText("6 runs").waitFor();
  await page.getByRole("heading", { name: "mnist_cnn on mnist" }).waitFor();
  await page.locator(".connection[data-state=live]").waitFor();
  for (const pixels of await paintedPixels(page)) assert.ok(pixels > 200);
  run(programs.store, store, "1", "50", "later");
  await page.getByText("7 runs").waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test("runs are compared by clicking, filtered by typing, and kept in the address", async () => {
  const { page, complaints } = await open(browser, address);
  await page.locator(".run-list li").nth(1).waitFor();
  await page.getByLabel("Filter runs").fill("4 workers");
  const boxes = page.locator(".run-list input[type=checkbox]");
  await page.locator(".run-list li").first().getByRole("button").click();
  await boxes.nth(1).check();
  await page.getByRole("heading", { name: "2 runs side by side" }).waitFor();
  assert.match(page.url(), /#runs=\d+,\d+$/);
  const again = await open(browser, page.url());
  await again.page.getByRole("heading", { name: "2 runs side by side" }).waitFor();
  assert.deepEqual([...complaints, ...again.complaints], []);
  await again.page.close();
  await page.close();
});

test("the stop button asks once more, and then stops the run", async () => {
  const training = spawn(process.execPath, ["-e", "process.on('SIGINT', () => process.exit(7)); setInterval(() => {}, 1000); console.log('ready')"], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => training.stdout.once("data", resolve));
  const ended = new Promise<number | null>((resolve) => training.once("exit", (code) => resolve(code)));
  run(programs.store, store, "1", "50", "stoppable", String(training.pid));
  const { page, complaints } = await open(browser, address);
  const button = page.locator("#stop");
  await page.locator(".run-list .state.running").waitFor();
  await page.locator(".run-list li", { has: page.locator(".state.running") }).getByRole("button").click();
  await button.getByText("Stop the run").waitFor();
  await button.click();
  await button.getByText("Really stop it?").waitFor();
  await button.click();
  assert.equal(await ended, 7);
  await page.getByText("Asked the run to stop").waitFor();
  await page.locator(".run-list .state.lost").first().waitFor();
  await button.waitFor({ state: "hidden" });
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a real training is followed while it runs, and stopped as by Ctrl-C", async () => {
  const words = ["--model", "shallow", "--data", "synthetic:1x28x28:10:2048", "--epochs", "100000", "--workers", "2", "--threads", "1"];
  const training = spawn(programs.convoy, ["train", ...words, "--store", folder.file("training.db"), "--out", folder.file("run"), "--serve", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<number | null>((resolve) => training.once("exit", (code) => resolve(code)));
  const live = await new Promise<string>((resolve, reject) => {
    let text = "";
    training.stderr.on("data", (data: Buffer) => {
      text += data.toString();
      const found = /live page: (\S+)/.exec(text);
      if (found) resolve(found[1]!);
    });
    training.once("exit", () => reject(new Error(text)));
  });
  const { page, complaints } = await open(browser, live);
  await page.getByText("2 workers · 1 thread each").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".plot canvas").length > 2);
  const before = await picture(page, "Throughput");
  await page.waitForFunction((old) => document.querySelectorAll<HTMLCanvasElement>(".plot canvas")[2]!.toDataURL() !== old, before);
  const metrics = await (await fetch(new URL("/metrics", live))).text();
  assert.match(metrics, /convoy_images_per_second\{run="run",model="shallow"/);
  await page.locator("#stop").click();
  await page.locator("#stop").click();
  assert.equal(await ended, 130);
  assert.deepEqual(complaints.filter((line) => !line.includes("ERR_")), []); // the server ended with it
  run(programs.convoy, "report", "--store", folder.file("training.db"), "-o", folder.file("stopped.html"));
  const report = await open(browser, `file://${folder.file("stopped.html")}`);
  await report.page.locator(".run-head .state.interrupted").waitFor();
  assert.deepEqual(report.complaints, []);
  await report.page.close();
  await page.close();
});

test("a server that goes away is noticed, and found again", async () => {
  const own = await serve(store);
  const { page } = await open(browser, own.address);
  await page.locator(".connection[data-state=live]").waitFor();
  const gone = new Promise((resolve) => own.process.once("exit", resolve));
  own.process.kill("SIGINT");
  await page.locator(".connection[data-state=lost]").waitFor();
  await gone;
  const again = await serve(store, new URL(own.address).port);
  await page.locator(".connection[data-state=live]").waitFor();
  again.process.kill("SIGINT");
  await page.close();
});
