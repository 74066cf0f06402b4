import { defineConfig } from "vite";
import { smallCatalog } from "./catalog.mjs";

/**
 * Two builds of one code base (`--mode page` and `--mode studio`), each one script and one style sheet: the page is put
 * into a single file by `heedful.viz.page`, the studio is served by `heedful studio`.
 */
export default defineConfig(({ mode }) => ({
  plugins: [smallCatalog(mode)],
  esbuild: { charset: "utf8", legalComments: "none" },
  build: {
    outDir: "../src/heedful/viz/built",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      input: mode === "studio" ? "src/studio.ts" : "src/page.ts",
      output: {
        format: "iife",
        entryFileNames: `${mode === "studio" ? "studio" : "page"}.js`,
        assetFileNames: `${mode === "studio" ? "studio" : "page"}[extname]`,
      },
    },
  },
  test: { include: ["test/**/*.test.ts"] },
})) as ReturnType<typeof defineConfig>;
