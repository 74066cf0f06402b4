import { defineConfig } from "vite";

// One script and one style sheet, which `heedful.viz.page` puts into a single file.
export default defineConfig({
  build: {
    outDir: "../src/heedful/viz/built",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      input: "src/main.ts",
      output: { format: "iife", entryFileNames: "page.js", assetFileNames: "page[extname]" },
    },
  },
  test: { include: ["test/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
