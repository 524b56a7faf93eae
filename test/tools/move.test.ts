import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

// Goal: a move rewrites every text that names a moved file, and no other text. Method: a small
// project in a separate repository; the test compares the whole tree after the move.

const program = resolve(import.meta.dirname, '../../tools/move.ts')

type Files = Readonly<Record<string, string>>

const project: Files = {
  '.oxfmtrc.json': '{ "semi": false, "singleQuote": true, "printWidth": 60 }\n',
  Makefile: 'bench:\n\tnode bench/gates.ts src/gates/*.ts\n\tnode src/gates-of-old/x.ts\n',
  'CHANGELOG.md':
    '# Changelog\n\n## 0.2.0 — unreleased\n- `src/gates/open.ts` opens.\n\n' +
    '## 0.1.0\n- `src/gates/open.ts` was [there](src/gates/open.ts).\n',
  'docs/rooms.md':
    '| `src/gates/` | gates; `bolts/` |\n| `src/` | `gates/`, `yard/` |\n' +
    'See [it](../src/gates/open.ts), `bolt.ts` and `gates/open.test.ts > opens`, not `gates`.\n',
  'all.config.ts': "export const first = ['./src/gates/open.ts']\n",
  'proto/gate.proto': '// For src/gates/open.ts.\n',
  'proto/gen/gate_pb.ts': '// For src/gates/open.ts.\nexport const made  =  1;\n',
  'proto/gen/SOURCES.sha256': `${hash('sha256', '// For src/gates/open.ts.\n')}  gate.proto\n`,
  'src/gates/open.ts':
    "import { bolt } from './bolts/bolt.ts'\nimport { now } from '../yard/hour.ts'\n\n" +
    'export const open = bolt + now\n',
  'src/gates/bolts/bolt.ts':
    "// Drawn by src/gates/open.ts.\nimport { now } from '../../yard/hour.ts'\n\n" +
    'export const bolt = now\nexport const itsSpareBolt = now\n',
  'src/gates-of-old/x.ts': "export const path = 'src/gates-of-old'\n",
  'src/yard/hour.ts': '// @guard force, 1:1, force--key\nexport const now = 1\n',
  'src/yard/page.tsx':
    "import { open } from '../gates/open.ts'\n\nexport const page = <p>{open}</p>\n",
  'src/main.ts':
    "import { open } from './gates/open.ts'\n" +
    "import { bolt, itsSpareBolt } from './gates/bolts/bolt.ts'\n\n" +
    'export const a = open\n' +
    'export const b = [bolt, itsSpareBolt]\n' +
    "export const later = import('./gates/open.ts')\n" +
    "export const url = new URL('./gates/open.ts', import.meta.url)\n" +
    "export type Open = typeof import('./gates/open.ts')\n" +
    "export const text = './gates/open.ts'\n",
  'test/tidy.test.ts':
    "const arrows = {\n  gates: ['yard'],\n  main: ['gates'],\n}\n" +
    "const inner = { 'gates/bolts': ['gates'] }\n" +
    'const pure = /^src\\/gates\\//\n' +
    'const one = /^src\\/(gates|yard)\\//\n' +
    'export const all = [arrows, inner, pure, one]\n',
  'test/gates/open.test.ts':
    "import { join } from 'node:path'\nimport { open } from '../../src/gates/open.ts'\n\n" +
    "vi.importActual('../../src/gates/bolts/bolt.ts')\n" +
    "export const page = join(import.meta.dirname, '../../docs', 'rooms.md')\n" +
    'export const opened = open\n',
  'test/table.ts': "export const proofs = ['gates/open.test.ts > opens']\n",
  'test/zoo/1.mutation': '@ place 1\n- now = 1\n+ now = 0\n',
  'test/guards/gate.mutation': '# Guard: src/gates/open.ts is asked.\n- bolt + now\n+ bolt\n',
  'test/attacks/force.test.ts': 'export {}\n',
  'test/attacks/force.mutation': '# Guard: g.\n- now = 1\n',
  'test/attacks/force--key.mutation': '# Guard: g.\n- now = 1\n+ now = 2\n',
}

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-mover-'))
  for (const [path, text] of Object.entries(project)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  git('init', '--quiet')
  git('add', '--all')
  git('-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message', 'all')
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function git(...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('git', words, { cwd: folder, encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
}

function move(...words: readonly string[]): { status: number | null; out: string; err: string } {
  const done = spawnSync(process.execPath, [program, ...words], { cwd: folder, encoding: 'utf8' })
  return { status: done.status, out: done.stdout, err: done.stderr }
}

function tree(): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith('.git/'))
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')]))
}

/** The project with other content in some files; a file whose text is null does not exist. */
function projectWith(changes: Readonly<Record<string, string | null>>): Record<string, string> {
  const all = Object.entries({ ...project, ...changes })
  return Object.fromEntries(all.flatMap(([path, text]) => (text === null ? [] : [[path, text]])))
}

const movedFolder = {
  Makefile: 'bench:\n\tnode bench/gates.ts src/entrances/*.ts\n\tnode src/gates-of-old/x.ts\n',
  'CHANGELOG.md':
    '# Changelog\n\n## 0.2.0 — unreleased\n- `src/entrances/open.ts` opens.\n\n' +
    '## 0.1.0\n- `src/gates/open.ts` was [there](src/entrances/open.ts).\n',
  'docs/rooms.md':
    '| `src/entrances/` | gates; `bolts/` |\n| `src/` | `entrances/`, `yard/` |\n' +
    'See [it](../src/entrances/open.ts), `bolt.ts` and `deep/entrances/open.test.ts > opens`, not `gates`.\n',
  'all.config.ts': "export const first = ['./src/entrances/open.ts']\n",
  'proto/gate.proto': '// For src/entrances/open.ts.\n',
  'proto/gen/gate_pb.ts': '// For src/entrances/open.ts.\nexport const made  =  1;\n',
  'proto/gen/SOURCES.sha256': `${hash('sha256', '// For src/entrances/open.ts.\n')}  gate.proto\n`,
  'src/gates/open.ts': null,
  'src/gates/bolts/bolt.ts': null,
  'src/entrances/open.ts': project['src/gates/open.ts'] ?? '',
  'src/entrances/bolts/bolt.ts':
    "// Drawn by src/entrances/open.ts.\nimport { now } from '../../yard/hour.ts'\n\n" +
    'export const bolt = now\nexport const itsSpareBolt = now\n',
  'src/yard/page.tsx':
    "import { open } from '../entrances/open.ts'\n\nexport const page = <p>{open}</p>\n",
  'src/main.ts':
    "import { open } from './entrances/open.ts'\n" +
    "import {\n  bolt,\n  itsSpareBolt,\n} from './entrances/bolts/bolt.ts'\n\n" +
    'export const a = open\n' +
    'export const b = [bolt, itsSpareBolt]\n' +
    "export const later = import('./entrances/open.ts')\n" +
    "export const url = new URL(\n  './entrances/open.ts',\n  import.meta.url,\n)\n" +
    "export type Open = typeof import('./entrances/open.ts')\n" +
    "export const text = './gates/open.ts'\n",
  'test/tidy.test.ts':
    "const arrows = {\n  entrances: ['yard'],\n  main: ['entrances'],\n}\n" +
    "const inner = { 'entrances/bolts': ['entrances'] }\n" +
    'const pure = /^src\\/entrances\\//\n' +
    'const one = /^src\\/(gates|yard)\\//\n' +
    'export const all = [arrows, inner, pure, one]\n',
  'test/gates/open.test.ts': null,
  'test/deep/entrances/open.test.ts':
    "import { join } from 'node:path'\nimport { open } from '../../../src/entrances/open.ts'\n\n" +
    "vi.importActual('../../../src/entrances/bolts/bolt.ts')\n" +
    "export const page = join(\n  import.meta.dirname,\n  '../../../docs',\n  'rooms.md',\n)\n" +
    'export const opened = open\n',
  'test/table.ts': "export const proofs = [\n  'deep/entrances/open.test.ts > opens',\n]\n",
}

const movedMutations = {
  'test/guards/gate.mutation': '# Guard: src/entrances/open.ts is asked.\n- bolt + now\n+ bolt\n',
}

describe('Moving a file or folder with the move tool', () => {
  test('updates every reference to a moved folder', () => {
    const done = move('src/gates', 'src/entrances', 'test/gates', 'test/deep/entrances')
    expect({ status: done.status, err: done.err }).toEqual({ status: 0, err: '' })
    expect(tree()).toEqual(projectWith({ ...movedFolder, ...movedMutations }))
    expect(done.out).toBe(
      'moved 3 files, and rewrote\n  9 import specifiers\n  2 links of pages\n' +
        '  6 names of rooms\n  3 paths in other files\n  2 paths in pages\n' +
        '  3 paths in programs and tests\n  2 test titles\nin 14 files\n' +
        'look at test/tidy.test.ts:7: an expression names gates\n',
    )
    const renamed = git('diff', '--cached', '--name-status', '--find-renames')
    expect(renamed.match(/^R\d+/gm)).toHaveLength(3)
  })

  test('updates the name of a moved file in prose, and leaves the name of its folder in prose unchanged', () => {
    expect(move('src/gates/bolts/bolt.ts', 'src/gates/draw.ts').status).toBe(0)
    const page = (project['docs/rooms.md'] ?? '').replace('`bolt.ts`', '`draw.ts`')
    expect(tree()).toMatchObject({
      'docs/rooms.md': page,
      'src/gates/draw.ts':
        "// Drawn by src/gates/open.ts.\nimport { now } from '../yard/hour.ts'\n\n" +
        'export const bolt = now\nexport const itsSpareBolt = now\n',
      'src/gates/open.ts': (project['src/gates/open.ts'] ?? '').replace('bolts/bolt', 'draw'),
    })
    expect(readdirSync(join(folder, 'src/gates')).sort()).toEqual(['draw.ts', 'open.ts'])
  })

  test('requires a trailing slash to move a file into a folder', () => {
    expect(move('src/yard/hour.ts', 'src/gates/').status).toBe(0)
    expect(tree()['src/gates/hour.ts']).toBe(project['src/yard/hour.ts'])
  })

  test('also moves the mutations of an attack test that is moved, and renames their markers', () => {
    expect(move('test/attacks/force.test.ts', 'test/attacks/theft.test.ts').status).toBe(0)
    expect(readdirSync(join(folder, 'test/attacks')).sort()).toEqual([
      'theft--key.mutation',
      'theft.mutation',
      'theft.test.ts',
    ])
    expect(tree()['src/yard/hour.ts']).toBe(
      '// @guard theft, 1:1, theft--key\nexport const now = 1\n',
    )
  })
})

describe('The move tool does not change any file', () => {
  test.for([
    [['src/none', 'src/some'], 'src/none does not exist'],
    [['src/gates', 'src/yard'], 'src/yard exists'],
    [['src/yard/hour.ts', 'src/a.ts', 'src/gates/open.ts', 'src/a.ts'], 'both become src/a.ts'],
    [['src/gates', 'src/gates/inner'], 'inside of what moves'],
    [['docs/rooms.md', 'docs/a.md'], 'is in none of'],
    [['src/gates'], 'usage'],
  ] as const)('if its arguments are %o', ([words, reason]) => {
    const done = move(...words)
    expect(done).toMatchObject({ status: 2, err: expect.stringContaining(reason) })
    expect(tree()).toEqual(project)
  })

  test('if there are uncommitted changes and the option that allows them is missing', () => {
    appendFileSync(join(folder, 'Makefile'), '# more\n')
    const words = ['src/yard', 'src/square']
    expect(move(...words)).toMatchObject({ status: 2, err: expect.stringContaining('--dirty') })
    expect(tree()).toEqual({ ...project, Makefile: `${project['Makefile']}# more\n` })
    expect(move('--dirty', ...words).status).toBe(0)
    expect(Object.keys(tree())).toContain('src/square/hour.ts')
  })

  test('in a dry run, which prints the same output as a real run', () => {
    const words = ['src/gates', 'src/entrances']
    const dry = move('--dry-run', ...words)
    expect(tree()).toEqual(project)
    expect(dry.out.replace('would move', 'moved')).toBe(move(...words).out)
  })
})
