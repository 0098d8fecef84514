// Builds the page as one HTML file: script, styles and font inside, nothing to fetch.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

// Puts the bundle's script and styles into the HTML, and allows exactly that script to run: text that comes with the data
// (a run's name) could not become a script even if it were inserted as markup.
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, output] of Object.entries(bundle)) {
        if (output.type === "chunk") script += output.code.replaceAll("</script", "<\\/script");
        else if (name.endsWith(".css")) style += String(output.source);
        else continue;
        delete bundle[name];
      }
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("there is no index.html");
      script = `\n${script}\n`;
      const hash = createHash("sha256").update(script).digest("base64");
      const policy =
        `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; ` +
        `font-src data:; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
      page.source = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("<!--style-->", () => `<style>${style}</style>`)
        .replace("<!--script-->", () => `<script type="module">${script}</script>`);
    },
  };
}

export default defineConfig({
  base: "./",
  build: {
    target: "es2021",
    assetsInlineLimit: 1 << 20,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    emptyOutDir: true,
  },
  plugins: [oneFile()],
});
