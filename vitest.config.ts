import { defineConfig } from 'vitest/config'
import { DearestFirst } from './test/support/dearest-first.ts'
import { PATIENCE_MS } from './test/support/patience.ts'

// `unit` runs in parallel and in one process tree; `mocked` has the files that put others in the
// place of modules, each with modules of its own; `process` starts real controllers. Each waits a
// part of its time: two cores are used by four files at once.
const mocked = 'test/**/*.mocked.test.ts'

// Node loads the sources as it does in the program, which saved 6 % of the processor time of the tests of api, router and auth.
// Only `mocked` needs the loader of Vitest.
const loadedByNode = { experimental: { viteModuleRunner: false, nodeLoader: false } }

// `namespaced` changes routes and ports of its host, and is there only in a network namespace that a
// test has made for it (test/support/network-namespace.ts).
const namespaced =
  process.env['FLOTILLA_TEST_NAMESPACE'] === '1'
    ? [
        {
          extends: true as const,
          test: { name: 'namespaced', include: ['test/**/*.namespaced.ts'] },
        },
      ]
    : []

// `console` walks the pages of the console in a browser: `make test-console` names it.
const browsers = process.argv.includes('console')
  ? [
      {
        extends: true as const,
        test: {
          name: 'console',
          include: ['test/console/**/*.browser.ts'],
          pool: 'forks' as const,
          maxWorkers: 1,
          testTimeout: 6 * PATIENCE_MS,
        },
      },
    ]
  : []

// `nightly` runs the commands of the pages in docs, and other drills of a minute each that rarely fail: `make drills`.
const nightly = process.argv.includes('nightly')
  ? [
      {
        extends: true as const,
        test: {
          ...loadedByNode,
          name: 'nightly',
          include: ['test/process/**/*.nightly.ts'],
          pool: 'forks' as const,
          maxWorkers: 3,
          isolate: false,
          testTimeout: 6 * PATIENCE_MS,
        },
      },
    ]
  : []

export default defineConfig({
  test: {
    sequence: { sequencer: DearestFirst },
    reporters: ['default', './test/support/count-reporter.ts'],
    // No time decides a test: what is waited for comes at once on an idle machine, and late on one that many share.
    testTimeout: 2 * PATIENCE_MS,
    hookTimeout: 2 * PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS, interval: 20 } },
    projects: [
      {
        extends: true,
        test: {
          ...loadedByNode,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          setupFiles: ['./test/support/after-each.ts'],
          exclude: ['test/process/**', mocked],
          pool: 'forks',
          maxWorkers: 4,
          // Most code of a test runs once or twice, so V8 compiles it at once and without optimizing.
          // Each process keeps all modules in memory. With a smaller initial heap, V8 searched them for garbage again and again,
          // which took 7 % of the processor time.
          execArgv: ['--always-sparkplug', '--initial-old-space-size=1024'],
          // Modules are loaded once a process, not once a file, which saves a third of the processor time: no file may leave
          // behind what another one could meet (test/support/after-each.ts puts back what the program itself changes).
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'mocked',
          include: [mocked],
          setupFiles: ['./test/support/after-each.ts'],
          pool: 'forks',
          maxWorkers: 4,
        },
      },
      {
        extends: true,
        test: {
          ...loadedByNode,
          name: 'process',
          include: ['test/process/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 4,
          isolate: false,
          testTimeout: 6 * PATIENCE_MS,
        },
      },
      ...namespaced,
      ...browsers,
      ...nightly,
    ],
  },
})
