import { defineConfig } from 'vitest/config'

// `unit` runs in parallel and in one process tree; `process` starts real controllers, one file at a time.
export default defineConfig({
  test: {
    reporters: ['default', './test/support/count-reporter.ts'],
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          setupFiles: ['./test/support/after-each.ts'],
          exclude: ['test/process/**'],
          pool: 'forks',
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: 'process',
          include: ['test/process/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          fileParallelism: false,
          testTimeout: 240_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
