// A browser for tests, which notes whatever a page complains about.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import type { Document } from "../../src/document";
import { embed } from "../made_up";

function needed(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run these tests by ctest`);
  return value;
}
export const programs = {
  page: needed("CONVOY_PAGE"),
  convoy: needed("CONVOY_PROGRAM"),
  store: needed("CONVOY_MADE_UP_STORE"),
};

// The browser runs as root in containers, and its processes have little shared memory there.
export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
}

export interface Opened {
  page: Page;
  complaints: string[]; // errors, warnings, dialogs, and requests that leave the page
}

export async function open(browser: Browser, address: string, options: { dark?: boolean; width?: number } = {}): Promise<Opened> {
  const page = await browser.newPage({ viewport: { width: options.width ?? 1280, height: 900 }, colorScheme: options.dark ? "dark" : "light", reducedMotion: "reduce" });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const home = new URL(address);
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.host !== home.host) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  return { page, complaints };
}

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "convoy-browser-"));

  file(name: string): string {
    return join(this.path, name);
  }
  // A report with made-up numbers; its address.
  report(name: string, content: Document): string {
    writeFileSync(this.file(name), embed(readFileSync(programs.page, "utf8"), content));
    return `file://${this.file(name)}`;
  }
  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export function run(program: string, ...args: string[]): string {
  const result = spawnSync(program, args, { encoding: "utf8" });
  if (result.status !== 0) throw new Error(`${program} ${args.join(" ")}: ${result.stderr}`);
  return result.stdout;
}

// `convoy serve`, and the address that it prints.
export async function serve(store: string, port = "0"): Promise<{ address: string; process: ChildProcess }> {
  const server = spawn(programs.convoy, ["serve", "--store", store, "--port", port], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise<string>((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (data: Buffer) => {
      text += data.toString();
      if (text.includes("\n")) resolve(text.trim());
    });
    server.on("exit", (code) => reject(new Error(`convoy serve ended with ${code}`)));
  });
  return { address, process: server };
}

// How many pixels of each chart's canvas are painted, in the order of the page.
export function paintedPixels(page: Page): Promise<number[]> {
  return page.$$eval(".plot canvas", (canvases) =>
    canvases.map((element) => {
      const canvas = element as HTMLCanvasElement;
      const data = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data;
      let painted = 0;
      for (let index = 3; index < data.length; index += 4) if (data[index]! > 0) ++painted;
      return painted;
    }),
  );
}

// What the canvas of a chart shows, to see whether it changed.
export function picture(page: Page, title: string): Promise<string> {
  return page.locator("figure", { has: page.getByText(title, { exact: true }) }).locator("canvas").first().evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
}
