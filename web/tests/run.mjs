// node tests/run.mjs unit|browser: bundles the tests of a folder and runs them with Node's own test runner.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.argv[2] ?? "unit";
const files = readdirSync(join(here, folder)).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(join(here, "..", "node_modules", ".tests-")); // beside the packages that they import
try {
  await build({
    entryPoints: files.map((name) => join(here, folder, name)),
    outdir: out,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["playwright-core"],
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  const tests = files.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...tests], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
