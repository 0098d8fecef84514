// How long it takes to open a large store: 500 runs with 2,000 rows of steps each. Prints figures and asserts none.
import { test } from "node:test";
import { Folder, launch, open, programs, run, serve } from "../browser/browser";

test("opening the live page of 500 runs and 1,000,000 rows of steps", async () => {
  const folder = new Folder();
  const store = folder.file("large.db");
  run(programs.store, store, "500", "1000");
  const { address, process: server } = await serve(store);
  const browser = await launch();
  const times: number[] = [];
  for (let repeat = 0; repeat < 7; ++repeat) {
    const begin = performance.now();
    const { page } = await open(browser, address);
    await page.getByText("500 runs").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".plot canvas").length > 3);
    times.push(performance.now() - begin);
    await page.close();
  }
  times.sort((a, b) => a - b);
  console.log(`until list and charts are drawn: best ${times[0]!.toFixed(0)} ms, median ${times[3]!.toFixed(0)} ms`);
  await browser.close();
  server.kill("SIGINT");
  folder.remove();
});
