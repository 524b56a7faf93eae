import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { innerArrows } from './support/inner-arrows.ts'

// Rules about the code itself. If one is broken, its message says how to fix the code.

const root = resolve(import.meta.dirname, '..')

/** Folders that each folder may import, besides itself and `proto/gen`. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  // Ports name terms, indexes, entries and records: they may import their types, but no code.
  ports: ['lib', 'raft/types.ts', 'entities/kind-records.ts'],
  config: ['lib'],
  raft: ['lib'],
  store: ['lib', 'ports', 'raft/types.ts', 'raft/entry-codec.ts'],
  entities: ['lib'],
  fsm: ['lib', 'entities', 'ports', 'raft/types.ts', 'raft/entry-codec.ts'],
  pki: ['lib'],
  backup: ['lib', 'ports', 'entities', 'fsm', 'pki', 'store', 'raft/types.ts'],
  migrate: ['lib', 'ports', 'entities', 'fsm', 'pki', 'config', 'backup', 'store'],
  cluster: ['lib', 'ports', 'raft', 'pki'],
  posture: ['lib', 'ports', 'entities', 'fsm'],
  auth: ['lib', 'ports', 'entities', 'fsm', 'pki'],
  api: ['lib', 'ports', 'entities', 'fsm', 'pki', 'auth', 'raft/types.ts'],
  channel: ['lib'],
  client: ['lib'],
  fabric: ['lib', 'ports', 'channel'],
  overlay: ['lib', 'config', 'channel', 'pki'],
  router: ['lib', 'config', 'channel', 'pki', 'overlay'],
  tunnel: ['lib', 'channel', 'overlay'],
  events: ['lib', 'ports', 'entities', 'channel'],
}
const compositionRoots = new Set(['threads', 'controller', 'cli', 'main.ts'])

const roomsWithInnerArrows = new Set(Object.keys(innerArrows).map((name) => name.split('/')[0]))

/** Only these files and folders may import a package that the rest of the program must not use. */
const packageOwners: Readonly<Record<string, string>> = {
  'classic-level': 'store',
  fastify: 'api',
  '@grpc/grpc-js': 'cluster',
  commander: 'cli',
  yaml: 'config',
  ws: 'lib',
  'libsodium-wrappers': 'overlay',
}

/**
 * Files that must give the same result on every controller and in every replay: all files of these
 * folders except the drivers, which wait, write and keep time for them.
 */
const pureRooms = /^src\/(raft|entities|fsm)\//
const drivers = new Set([
  'src/raft/node.ts',
  'src/fsm/state-machine.ts',
  'src/fsm/records/load.ts',
  'src/fsm/records/index-waiters.ts',
  'src/fsm/records/write-behind.ts',
  // A query of the audit log runs on one controller, in slices; the state machine never calls it.
  'src/fsm/audit-query.ts',
])

/**
 * Members of Node's modules that pure code may import: only functions whose result depends only on
 * their arguments.
 */
const pureNodeImports = new Set([
  'hash',
  'createHash',
  'timingSafeEqual',
  'deflateRawSync',
  'inflateRawSync',
])

const NODE_IMPORT = /import\s+([^'"]+?)\s+from\s+'(node:[^']+)'/g

const impurities: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\(|\bnew Date\(\)|\bDate\(\)/, 'take the time from the entry or the tick'],
  [/\bMath\.random\(|\brandom(UUID|Bytes|Int)\(|\bgetRandomValues\(/, 'take a seeded Random'],
  [/\bperformance\.|process\.hrtime/, 'take the time from the tick'],
  [/\bawait\b|\basync\b/, 'the driver waits, pure code does not'],
  [/\bset(Timeout|Interval|Immediate)\(|queueMicrotask\(/, 'ticks are passed in'],
  [/\blocaleCompare\(|\btoLocale|\bIntl\./, 'compare by code unit; a locale differs by machine'],
  [
    /\bprocess\./,
    'options are passed in, and the process tells a different time and memory everywhere',
  ],
  [/\bglobalThis\b|\bimport\(/, 'name what is used, where the imports are'],
]

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** Code without comments, because comments may mention names that code may not use. */
function code(file: string): string {
  return read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
}

function importsOf(file: string): string[] {
  const found = code(file).matchAll(
    /(?:import|export)\s[^'"]*?from\s+['"]([^'"]+)['"]|import\(\s*'([^']+)'\s*\)|import\s+'([^']+)'|new URL\(\s*'(\.[^']+\.ts)'/g,
  )
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? match[4] ?? '')
}

const roomOf = (file: string): string => file.split('/')[1] ?? ''
/**
 * The console runs in a browser: its packages are built into its files, and it imports src/client.
 * Its import page also uses the plan of `flotilla apply`.
 */
const ofConsole = (file: string): boolean => file.startsWith('src/console/')
const program = sources('src')
const src = program.filter((file) => !ofConsole(file))

test('no source files import each other in a cycle, not even for types', () => {
  const targets = new Map(
    program.map((file) => [
      file,
      importsOf(file)
        .filter((target) => target.startsWith('.'))
        .map((target) => relative(root, join(root, dirname(file), target))),
    ]),
  )
  const circles = circlesIn(targets)
  expect(circles, 'move the shared type to a separate file, or to the file that owns it').toEqual(
    [],
  )
  expect(circlesIn(new Map(Object.entries({ a: ['b'], b: ['c'], c: ['b'] })))).toEqual(['b, c'])
})

/** Sets of files that import each other in a circle (Tarjan, 1972), each as its sorted names. */
function circlesIn(targets: ReadonlyMap<string, readonly string[]>): string[] {
  const circles: string[] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const isOpen = new Set<string>()
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.size - 1)
    open.push(file)
    isOpen.add(file)
    for (const target of targets.get(file) ?? []) {
      if (!targets.has(target)) continue
      if (!order.has(target)) visit(target)
      if (!isOpen.has(target)) continue
      lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0))
    }
    if (lowest.get(file) !== order.get(file)) return
    const found = open.splice(open.indexOf(file))
    for (const one of found) isOpen.delete(one)
    if (found.length > 1) circles.push(found.sort().join(', '))
  }
  for (const file of targets.keys()) if (!order.has(file)) visit(file)
  return circles
}

/** How docs/ARCHITECTURE.md names the single files of a room that another room may import. */
const fileNames: Readonly<Record<string, string>> = {
  'raft/types.ts': 'types of Raft',
  'raft/types.ts, raft/entry-codec.ts': 'types and entry codec of Raft',
  'raft/types.ts, entities/kind-records.ts': 'types of Raft and of records',
}

test('docs/ARCHITECTURE.md lists the folders that each top-level folder of src may import', () => {
  const rows = read('docs/ARCHITECTURE.md').matchAll(/^\| `src\/(\w+)\/` \| .* \| (.*) \|$/gm)
  const listed = new Map([...rows].map(([, room = '', cell = '']) => [room, cell.split(';')[0]]))
  const allowed = Object.entries(arrows).map(([room, targets]) => {
    const files = targets.filter((to) => to.includes('/')).join(', ')
    const folders = targets.filter((to) => !to.includes('/'))
    const names = files === '' ? folders : [...folders, fileNames[files] ?? files]
    return [room, names.join(', ') || '–'] as const
  })
  expect(allowed.map(([room]) => [room, listed.get(room)])).toEqual(allowed)
})

test('each top-level folder of src imports only the folders that are allowed for it', () => {
  const broken: string[] = []
  for (const file of src) {
    const room = roomOf(file)
    if (compositionRoots.has(room)) continue
    const allowed = arrows[room]
    if (allowed === undefined) {
      broken.push(
        `${file}: room ${room} has no arrows; add it to test/tidy.test.ts and docs/ARCHITECTURE.md`,
      )
      continue
    }
    for (const target of importsOf(file)) {
      if (!target.startsWith('.')) continue
      const path = relative(root, resolve(root, dirname(file), target))
      if (path.startsWith('proto/gen/')) continue
      const inside = path.replace(/^src\//, '')
      const isAllowed =
        inside.startsWith(`${room}/`) ||
        allowed.some((to) => inside === to || inside.startsWith(`${to}/`))
      if (!isAllowed) broken.push(`${file} imports ${path}: meet at a port in src/ports instead`)
    }
  }
  expect(broken).toEqual([])
})

/** The import page of the console shares the plan of a network file with `flotilla apply`. */
const consoleImport = 'src/console/pages/import/'
const applyFiles = /^src\/(cli\/(access|client|network)\/|controller\/command-failure\.ts$)/

test('the console imports only src/client, declared packages and, for its import page, files of flotilla apply', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const built = new Set([
    ...Object.keys(manifest['dependencies'] ?? {}),
    ...Object.keys(manifest['devDependencies'] ?? {}),
  ])
  const files = readdirSync(join(root, 'src/console'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join('src/console', name))
  const broken = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => {
        if (target.startsWith('.')) {
          const path = relative(root, resolve(root, dirname(file), target))
          const isOfApply = file.startsWith(consoleImport) && applyFiles.test(path)
          return !ofConsole(path) && !path.startsWith('src/client/') && !isOfApply
        }
        const parts = target.split('/')
        return !built.has(target.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? ''))
      })
      .map((target) => `${file} imports ${target}`),
  )
  expect(files.length).toBeGreaterThan(20)
  expect(broken).toEqual([])
})

test.each([
  ['the API client', 'src/client/', []],
  // Packages of the import page, which read YAML and version ranges.
  ['the import of the console', consoleImport, [/^yaml$/, /^semver\//, /^preact/, /^@preact\//]],
] as const)('%s can run in a browser, because it imports no Node module', (_, folder, packages) => {
  const queue = program.filter((file) => file.startsWith(folder))
  const reached = new Set(queue)
  const broken: string[] = []
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    for (const target of importsOf(file)) {
      const path = relative(root, resolve(root, dirname(file), target))
      if (!target.startsWith('.')) {
        if (!packages.some((one) => one.test(target))) broken.push(`${file} imports ${target}`)
        continue
      }
      if (!reached.has(path)) queue.push(path)
      reached.add(path)
    }
  }
  expect(reached.size).toBeGreaterThan(5)
  expect(broken).toEqual([])
})

test('each subject imports only the subjects of its room that test/support/inner-arrows.ts allows', () => {
  const broken: string[] = []
  for (const file of program) {
    const subject = dirname(file).replace(/^src\/?/, '')
    const room = roomOf(file)
    if (!roomsWithInnerArrows.has(room)) continue
    const allowed = innerArrows[subject]
    if (allowed === undefined) {
      broken.push(`${file}: ${subject} has no arrows; add it to test/support/inner-arrows.ts`)
      continue
    }
    for (const target of importsOf(file)) {
      if (!target.startsWith('.')) continue
      const to = dirname(relative(root, resolve(root, dirname(file), target))).replace(
        /^src\/?/,
        '',
      )
      const isInRoom = to === room || to.startsWith(`${room}/`)
      if (isInRoom && to !== subject && !allowed.includes(to)) {
        broken.push(`${file} imports src/${to}: ${subject} does not know ${to}`)
      }
      if (room === 'controller' && to.startsWith('cli')) {
        broken.push(`${file} imports src/${to}: a controller does not know who starts it`)
      }
    }
  }
  expect(broken).toEqual([])
})

/**
 * Values that a controller passes to the API, and those that the API derives from them; only the
 * code that connects them may use both names.
 */
const bags = /\b(ApiDeps|ApiServices)\b/
const apiCompositions = new Set([
  'src/api/operations.ts',
  'src/api/api-deps.ts',
  'src/api/services.ts',
  'src/api/server.ts',
  'src/controller/service/api.ts',
  'src/controller/service/live-data.ts',
])

test('only the files that compose the API use the types of all its dependencies', () => {
  const broken = src.filter((file) => !apiCompositions.has(file) && bags.test(code(file)))
  expect(broken).toEqual([])
  expect([...apiCompositions].filter((file) => !bags.test(code(file)))).toEqual([])
})

test('the TypeScript type of an operation’s request body is derived from the body schema, without a cast', () => {
  const cast = /\bcall\.body\b|\bbody\b\)? as\b(?! const)/
  const broken = src
    .filter((file) => /^src\/(api|auth)\//.test(file) && cast.test(code(file)))
    .map(
      (file) => `${file} casts a body: make the operation by withBody of src/api/http/operation.ts`,
    )
  expect(broken).toEqual([])
})

test('no operation declares refusals that its definition already implies', () => {
  const derived = /\brefusals(?::| =) \[[^\]]*\b(400|413|415|503)\b/
  const broken = src
    .filter((file) => file.startsWith('src/api/') && derived.test(code(file)))
    .map((file) => `${file}: leave out what refusalsOf of src/api/schemas/openapi.ts adds`)
  expect(broken).toEqual([])
})

test('each npm package with an owner in this file is imported only by the top-level folder that owns it', () => {
  const broken: string[] = []
  for (const file of src) {
    for (const target of importsOf(file)) {
      const owner = packageOwners[target]
      if (owner !== undefined && roomOf(file) !== owner) {
        broken.push(`${file} imports ${target}: only src/${owner} may`)
      }
    }
  }
  expect(broken).toEqual([])
})

test('every imported npm package is a declared dependency, and every dependency is imported and documented', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const declared = Object.keys(manifest['dependencies'] ?? {})
  const imported = new Set<string>()
  for (const file of [...src, ...sources('proto/gen')]) {
    for (const target of importsOf(file)) {
      if (target.startsWith('.') || target.startsWith('node:')) continue
      const parts = target.split('/')
      imported.add(target.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? ''))
    }
  }
  expect([...imported].sort()).toEqual(declared.sort())
  const documented = read('docs/internals/dependencies.md')
  const all = [...declared, ...Object.keys(manifest['devDependencies'] ?? {})]
  expect(all.filter((name) => !documented.includes(`\`${name}\``))).toEqual([])
})

test('the Raft core, the state machine and the entity descriptors use no clock, randomness, environment or network', () => {
  const broken: string[] = []
  for (const file of src) {
    if (!pureRooms.test(file) || drivers.has(file)) continue
    const text = code(file)
    for (const [, names = '', from = ''] of text.matchAll(NODE_IMPORT)) {
      const isWhole = !names.startsWith('{')
      const taken = names
        .replace(/[{}]/g, '')
        .split(',')
        .map((name) => name.trim())
        .filter(Boolean)
      if (isWhole || taken.some((name) => !pureNodeImports.has(name))) {
        broken.push(
          `${file} imports ${names} from ${from}: pure code does no I/O and draws nothing`,
        )
      }
    }
    for (const [pattern, instead] of impurities) {
      if (pattern.test(text)) broken.push(`${file}: ${pattern.source}: ${instead}`)
    }
  }
  expect(broken).toEqual([])
})

test('every source file is reachable from the program, and no file is named utils, helpers, common or misc', () => {
  const threads = src.filter((file) => /^src\/threads\/(\w+-thread|state-probe)\.ts$/.test(file))
  const queue = ['src/main.ts', ...threads]
  const reached = new Set<string>(queue)
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    for (const target of importsOf(file)) {
      if (!target.startsWith('.')) continue
      const path = relative(root, resolve(root, dirname(file), target))
      if (!path.startsWith('src/') || reached.has(path)) continue
      reached.add(path)
      queue.push(path)
    }
  }
  expect(src.filter((file) => !reached.has(file))).toEqual([])
  expect(src.filter((file) => /\/(utils?|helpers?|common|misc)\.ts$/.test(file))).toEqual([])
})

test('the command line writes to the terminal only through the function that escapes untrusted text, or where it moves the cursor', () => {
  const writers = src.filter(
    (file) => file.startsWith('src/cli/') && /process\.std(out|err)\.write/.test(code(file)),
  )
  expect(writers).toEqual([
    // The screen of `cluster status --watch` and the progress display of a restore move the cursor
    // directly.
    'src/cli/cluster/commands.ts',
    'src/cli/snapshot/restore-running.ts',
    'src/cli/terminal/output.ts',
  ])
})

test('the source contains no markers of unfinished work', () => {
  const broken: string[] = []
  for (const file of [...src, ...sources('test'), ...sources('bench')]) {
    const text = read(file)
    const later = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|'))
    if (later.test(text)) broken.push(`${file}: finish it or say in docs that it is missing`)
  }
  expect(broken).toEqual([])
})

test('only one source file calls the functions that read peer certificates', () => {
  const readers = src.filter((file) => /\.getPeer(X509)?Certificate\(/.test(read(file)))
  expect(readers).toEqual(['src/lib/runtime/peer-certificates.ts'])
})

test('in the API, the fabric and the limits, only one source file reads the address of a TCP connection', () => {
  const readers = src.filter(
    (file) =>
      /^src\/(?:api|fabric|lib\/bounds)\//.test(file) &&
      /\bsocket\.remote(?:Address|Port)\b/.test(read(file)),
  )
  expect(readers).toEqual(['src/lib/bounds/client-address.ts'])
})

test('a test file that mocks a module is named .mocked.test.ts, so that it runs in isolation', () => {
  const mocking = sources('test').filter((file) => read(file).includes('vi.' + 'mock('))
  expect(mocking.length).toBeGreaterThan(0)
  expect(mocking.filter((file) => !file.endsWith('.mocked.test.ts'))).toEqual([])
})

test('an entity descriptor has at most 90 lines without its comments, except for the largest descriptor', () => {
  const linesMax: Readonly<Record<string, number>> = { 'src/entities/kinds/identity.ts': 145 }
  const entities = src.filter((file) => file.startsWith('src/entities/'))
  const descriptors = entities.filter((file) => / = defineEntity\(/.test(read(file)))
  const broken = descriptors.flatMap((file) => {
    const lines = read(file)
      .split('\n')
      .filter((line) => !/^\s*(?:\/\*\*|\*|\/\/)/.test(line))
    const [count, max] = [lines.length, linesMax[file] ?? 90]
    return count > max ? [`${file}: ${count} lines, at most ${max}`] : []
  })
  expect(broken, 'move text that several entities repeat into src/entities; see refs.ts').toEqual(
    [],
  )
  expect(descriptors.length).toBeGreaterThan(30)
})

test('the generated message code matches the current message definitions, according to recorded checksums', () => {
  const recorded = read('proto/gen/SOURCES.sha256').trim().split('\n').sort()
  const actual = readdirSync(join(root, 'proto'))
    .filter((name) => name.endsWith('.proto'))
    .map(
      (name) =>
        `${createHash('sha256')
          .update(read(`proto/${name}`))
          .digest('hex')}  ${name}`,
    )
    .sort()
  expect(actual, 'run `make proto`').toEqual(recorded)
})
