import { type ChildProcess, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { isRunning, until } from './support/client.ts'
import { freePortBlock } from '../support/ports.ts'

// Goal: the commands of docs/start/evaluate.md, whose beginning the README shows, and of
// docs/integrate/api.md print the documented results, line by line.

/** Maximum time of a step; the first one installs packages and builds the console. */
const STEP_MS = 300_000
const ROOT = resolve(import.meta.dirname, '../..')
const PROGRAM = resolve(process.env['FLOTILLA_PROGRAM'] ?? '', '../..')
const PAGE = 'docs/start/evaluate.md'
const API_PAGE = 'docs/integrate/api.md'
const OTHER_TERMINAL = '# in a third terminal'

let folder: string
let port: number
const terminals: Terminal[] = []

/**
 * A shell in the project folder that exits at the first line that fails, as a reader would stop
 * there.
 */
class Terminal {
  readonly #child: ChildProcess
  output = ''
  #done = 0

  constructor() {
    // The shell has a separate process group, as each command in a terminal has, so that ^C reaches
    // every program in it.
    this.#child = spawn('bash', ['-eo', 'pipefail'], {
      cwd: folder,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        // Only the ports differ from the page, because other tests run at the same time.
        PORT: `${port}`,
        XDG_CONFIG_HOME: join(folder, 'config'),
        FLOTILLA_RAFT_ELECTION_TIMEOUT_MS: '2000',
        FLOTILLA_RAFT_ELECTION_TIMEOUT_MAX_MS: '4000',
      },
    })
    const gather = (chunk: Buffer): void => {
      this.output += chunk.toString('utf8')
    }
    this.#child.stdout?.on('data', gather)
    this.#child.stderr?.on('data', gather)
    terminals.push(this)
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  type(lines: string): void {
    this.#done += 1
    this.#child.stdin?.write(`${lines}\nprintf '\\ntyped ${this.#done}\\n'\n`)
  }

  /** Waits until all typed lines have run. @throws when a line failed. */
  async finish(): Promise<void> {
    await this.shows(new RegExp(`^typed ${this.#done}$`, 'm'))
  }

  async shows(pattern: RegExp): Promise<void> {
    const seen = await until(
      `${pattern} in the terminal`,
      () => Promise.resolve(pattern.test(this.output) ? 'shown' : this.hasEnded && 'ended'),
      STEP_MS,
    ).catch((error: unknown) => String(error))
    if (seen !== 'shown') throw new Error(`${seen} without ${pattern}:\n${this.output}`)
  }

  /** Sends ^C. */
  async interrupt(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const { pid } = this.#child
    if (pid === undefined || this.hasEnded) return
    const ended = new Promise((done) => this.#child.once('exit', done))
    process.kill(-pid, signal)
    await ended
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-readme-'))
  port = await freePortBlock(4)
  const parts = ['src', 'bin', 'proto', 'tools', 'Makefile', 'package.json', 'package-lock.json']
  for (const name of [...parts, 'README.md', PAGE, API_PAGE]) {
    const filter = (path: string): boolean => !path.endsWith('/node_modules')
    cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter })
  }
  // `node_modules` is a folder of links: if npm runs in the copy, it removes only the links. Its
  // timestamp is newer than that of package.json, so that make has nothing to install.
  const installed = join(folder, 'node_modules')
  mkdirSync(installed)
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.') || name === '.bin') {
      symlinkSync(join(ROOT, 'node_modules', name), join(installed, name))
    }
  }
  writeFileSync(join(installed, '.package-lock.json'), '{}')
  // The console is copied in its built form, and last, so that make has nothing to build: its
  // bundler does not follow such links.
  cpSync(join(PROGRAM, 'dist/console'), join(folder, 'dist/console'), { recursive: true })
})

afterAll(async () => {
  for (const terminal of terminals.toReversed()) await terminal.interrupt()
  for (const name of readdirSync(join(folder, '.flotilla'))) {
    const file = join(folder, '.flotilla', name, 'pid')
    const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : null
    if (pid !== null && isRunning(pid)) process.kill(pid, 'SIGKILL')
  }
  rmSync(folder, { recursive: true, force: true })
})

/** The commands in order, and whether each needs a separate terminal. */
function steps(): { lines: string; isElsewhere: boolean }[] {
  return blocksOf(readFileSync(join(folder, PAGE), 'utf8')).flatMap((block) =>
    block.split(OTHER_TERMINAL).flatMap((lines, at) => {
      const isElsewhere = at > 0
      return lines.trim() === '' ? [] : { lines: shifted(lines.trim()), isElsewhere }
    }),
  )
}

function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/** Replaces the ports of the page by those of this test, in the same order. */
function shifted(lines: string): string {
  const pattern = /(127\.0\.0\.1:|"port":|--proxy [a-z]+:)(1[23478]8[0-9])\b/g
  return lines.replace(pattern, (_, before: string, found: string) => {
    return `${before}${Number(found) - 1280 + port}`
  })
}

test('the README contains the first three command blocks of docs/start/evaluate.md', () => {
  const typed = blocksOf(readFileSync(join(folder, PAGE), 'utf8'))
  const shown = blocksOf(readFileSync(join(folder, 'README.md'), 'utf8'))
  expect(shown.slice(0, 3)).toEqual(typed.slice(0, 3))
})

test('the commands of docs/start/evaluate.md work when pasted in order', async () => {
  const [quickstart, ...others] = steps()
  expect(quickstart?.lines).toBe('make quickstart')
  expect(others.length).toBeGreaterThanOrEqual(3)
  const first = new Terminal()
  first.type('make quickstart')
  await first.shows(/^ready$/m)

  const integrator = new Terminal()
  for (const block of blocksOf(readFileSync(join(folder, API_PAGE), 'utf8'))) {
    integrator.type(shifted(block.trim()))
  }
  await integrator.finish()
  expect(integrator.output).toMatch(/^enrolled: \.flotilla\/phone\.pem$/m)
  // The services that the phone received from the third controller. The phone enrolled with the
  // first controller.
  expect(integrator.output).toMatch(/"name":"notes"[^\n]*"permissions":\["Dial"\]/)
  await integrator.interrupt('SIGHUP')

  const second = new Terminal()
  for (const { lines, isElsewhere } of others) {
    if (!isElsewhere) {
      // A line of a later terminal ends a foreground program, such as a joining controller.
      if (second.output !== '') await second.finish()
      second.type(lines)
      continue
    }
    await second.shows(/^joined: ctrl4 is a voter$/m)
    const third = new Terminal()
    third.type(lines)
    await third.finish()
    expect(third.output).toContain('ctrl4')
    await third.interrupt('SIGHUP')
  }
  await second.finish()
  // The health check of a controller, to which the laptop connected through an edge router of the
  // quickstart.
  expect(second.output).toContain('"healthy":true')
  expect(second.output).toMatch(/^laptop -> status\ndial: yes$/m)
  expect(second.output).toMatch(/^laptop -> wiki\ndial: .*$/m)
  expect(second.output).toMatch(/^wiki /m)
  expect(second.output).toMatch(/^enrolled: \.flotilla\/laptop\.json$/m)
  const laptop = JSON.parse(readFileSync(join(folder, '.flotilla/laptop.json'), 'utf8')) as {
    readonly ztAPIs: readonly string[]
  }
  expect(laptop.ztAPIs.toSorted()).toEqual(
    [port, port + 1, port + 2].map((each) => `https://127.0.0.1:${each}/edge/client/v1`),
  )
  await first.shows(/^ctrl[123] .*To start it again:$/m)
  // The two remaining controllers accepted the write after the kill.
  expect(second.output).toMatch(/^created service mail, id /m)
  expect(second.output).toMatch(/^mail /m)

  await first.interrupt()
  expect(first.output).toMatch(/^stopped$/m)
})
