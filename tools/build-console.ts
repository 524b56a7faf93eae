// Builds the web console from src/console: `node tools/build-console.ts OUT`.
//
// OUT gets index.html and an assets/ folder with hashed file names, and a compressed copy (.br,
// .gz) of each text file; controllers serve these files from memory. The build fails if the
// download of a browser exceeds the limits below.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build, type Plugin, type Rolldown } from 'vite'

const root = resolve(import.meta.dirname, '..')
/**
 * Maximum bytes after gzip: of the files that a browser loads before the first page, and of all
 * files.
 */
const FIRST_LOAD_MAX = 60 * 1024
const ALL_MAX = 200 * 1024
const FIRST_REQUESTS_MAX = 12

/**
 * Groups modules into few chunks, because compression saves a tenth more in a large chunk than in
 * many small ones. The console loads all chunks once a page is idle, so a separate chunk for one
 * page has no advantage. Only the import is in a separate chunk, because it contains large packages.
 */
const chunkGroups: Rolldown.CodeSplittingGroup[] = [
  {
    name: (id, context) => {
      if (isInFirstLoad(id, context)) return 'first'
      const isApart = !/\/src\/(console|client)\//.test(id) || id.includes('/pages/import/')
      return isApart ? null : 'pages'
    },
    includeDependenciesRecursively: false,
  },
]

const UNUSED_YAML =
  /\/yaml\/browser\/dist\/(?:schema\/yaml-1\.1\/\w+|stringify\/\w+|doc\/(?:createNode|anchors|applyReviver)|nodes\/(?:addPairToJSMap|toJS)|parse\/cst-visit)\.js$/

/**
 * Leaves out the modules of the package `yaml` that create, change and write YAML or convert it to
 * plain values, and those of YAML 1.1: the console only reads the nodes of network files, which are
 * YAML 1.2, but the package refers to these modules.
 */
const withoutUnusedYaml: Plugin = {
  name: 'without-unused-yaml',
  load(id) {
    if (!UNUSED_YAML.test(id)) return null
    const [, names = ''] = /^export \{ (.*) \};$/m.exec(readFileSync(id, 'utf8')) ?? []
    return `const ${names.replaceAll(', ', ' = undefined, ')} = undefined\nexport { ${names} }`
  },
}

/**
 * Leaves out status, retry and default message of problems: the code that the import shares with the
 * controller only creates problems with a fault, and all other problems come from the API.
 */
const withoutProblemDetails: Plugin = {
  name: 'without-problem-details',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/src/lib/problems.ts')) return null
    const details = /\b(?:http: \d+|retry: '[\w-]+'|message:\s*(?:'[^'\n]*'|"[^"\n]*"|`[^`]*`)),?/g
    return code.replaceAll(details, '')
  },
}

const [out] = process.argv.slice(2)
if (out === undefined) {
  console.error('usage: node tools/build-console.ts OUT')
  process.exit(2)
}

// With another value of NODE_ENV, such as `test` in a test, Vite builds its larger development
// variant.
process.env['NODE_ENV'] = 'production'
const first = await bundle(resolve(out))
const sizes = compress(resolve(out))
judge(first, sizes)

/**
 * Whether the entry imports the module directly or through other modules, without dynamic imports.
 */
function isInFirstLoad(
  id: string,
  context: Rolldown.ChunkingContext,
  seen = new Set<string>(),
): boolean {
  if (seen.has(id)) return false
  seen.add(id)
  const module = context.getModuleInfo(id)
  if (module === null) return true
  return module.isEntry || module.importers.some((one) => isInFirstLoad(one, context, seen))
}

/** @returns the files that a browser loads before the first page. */
async function bundle(dir: string): Promise<Set<string>> {
  rmSync(dir, { recursive: true, force: true })
  const made = await build({
    configFile: false,
    root: join(root, 'src/console'),
    base: '/console/',
    logLevel: 'warn',
    plugins: [withoutUnusedYaml, withoutProblemDetails],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: dir,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: { polyfill: false },
      // The content security policy of the console does not permit data: URLs for scripts and
      // styles.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      rolldownOptions: {
        // Without this, a build on a busy machine prints warnings about slow plugins.
        checks: { pluginTimings: false },
        // Removes the schemas of responses that the import does not use, although calls build them.
        treeshake: {
          manualPureFunctions: ['openObjectSchema', 'closedObjectSchema', 'arraySchema'],
        },
        output: { codeSplitting: { groups: chunkGroups } },
      },
    },
    worker: { format: 'es' },
  })
  const { output } = made as Rolldown.RolldownOutput
  const files = new Set(['index.html'])
  const take = (name: string): void => {
    const chunk = output.find(({ fileName }) => fileName === name)
    if (chunk === undefined || files.has(name)) return
    files.add(name)
    if (chunk.type !== 'chunk') return
    chunk.imports.forEach(take)
    chunk.viteMetadata?.importedCss.forEach(take)
  }
  for (const chunk of output) if (chunk.type === 'chunk' && chunk.isEntry) take(chunk.fileName)
  return files
}

/** Writes the compressed copies. @returns bytes after gzip, by file. */
function compress(dir: string): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = readFileSync(path)
    const gzip = gzipSync(bytes, { level: 9 })
    const brotli = brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
    })
    writeFileSync(`${path}.gz`, gzip)
    writeFileSync(`${path}.br`, brotli)
    sizes.set(relative(dir, path), gzip.length)
  }
  return sizes
}

function judge(first: ReadonlySet<string>, sizes: ReadonlyMap<string, number>): void {
  const sum = (names: Iterable<string>): number =>
    [...names].reduce((bytes, name) => bytes + (sizes.get(name) ?? 0), 0)
  const [firstLoad, all] = [sum(first), sum(sizes.keys())]
  const kb = (bytes: number): string => `${(bytes / 1024).toFixed(1)} kB`
  console.log(
    `console: first load ${kb(firstLoad)} of ${kb(FIRST_LOAD_MAX)} in ${first.size} requests, ` +
      `all ${kb(all)} of ${kb(ALL_MAX)} (gzip)`,
  )
  if (firstLoad <= FIRST_LOAD_MAX && all <= ALL_MAX && first.size <= FIRST_REQUESTS_MAX) return
  const bySize = [...sizes].sort(([, a], [, b]) => b - a)
  for (const [name, bytes] of bySize) console.error(`${kb(bytes)} ${name}`)
  console.error('the console is beyond its budget: load a page or a package later, or leave it out')
  process.exit(1)
}
