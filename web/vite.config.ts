import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The server serves what is built here; `npm run dev` passes /api on to a server at its usual port.
export default defineConfig({
  plugins: [react()],
  resolve: {
    // A test helper among @rjsf/core's exports imports a validator that the page's content policy forbids.
    alias: { '@rjsf/validator-ajv8': '/src/forms/validator.ts' },
  },
  build: {
    // Older targets have light-dark() rewritten into variables that only a color-scheme in the same sheet sets.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    outDir: '../src/evalstudio/server/web',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    // The generated forms come in one piece of this size, loaded with the first editor that shows one.
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { '/api': process.env.EVALSTUDIO_URL ?? 'http://localhost:3000' } },
  test: { include: ['src/**/*.test.{ts,tsx}'] },
});
