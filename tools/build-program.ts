// Builds the installed program: `node tools/build-program.ts OUT [--self-contained]`.
//
// OUT gets bin/flotilla, package.json and dist/, which has the sources as a few JavaScript files,
// and the console in dist/console. Node strips no types below node_modules, and a start spends most
// of its processor time on finding a thousand modules. The tested packages are beside it, for npm
// to put into the archive: npm 11 ignores a shrinkwrap, and would run their install scripts. A
// self-contained program has them in its own files, except those with native parts, which Node
// finds in a folder above OUT.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { rolldown } from 'rolldown'

const root = resolve(import.meta.dirname, '..')
const native = ['argon2', 'classic-level']
const threads = ['wal', 'raft', 'schema', 'certificate']

const { values, positionals } = parseArgs({
  options: { 'self-contained': { type: 'boolean', default: false } },
  allowPositionals: true,
})
const [out] = positionals
if (out === undefined) {
  console.error('usage: node tools/build-program.ts OUT [--self-contained]')
  process.exit(2)
}

await bundle(join(out, 'dist'), values['self-contained'])
buildConsole(join(out, 'dist/console'))
mkdirSync(join(out, 'bin'), { recursive: true })
copyFileSync(join(root, 'bin/flotilla'), join(out, 'bin/flotilla'))
writeJson('package.json', manifest())
writeJson('npm-shrinkwrap.json', shrinkwrap())
if (!values['self-contained']) bundlePackages()
for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md'])
  copyFileSync(join(root, name), join(out, name))
for (const name of ['docs', 'deploy']) {
  rmSync(join(out, name), { recursive: true, force: true })
  cpSync(join(root, name), join(out, name), { recursive: true })
}

async function bundle(dir: string, isSelfContained: boolean): Promise<void> {
  rmSync(dir, { recursive: true, force: true })
  const sources = threads.map((name) => [
    `${name}-thread`,
    join(root, `src/threads/${name}-thread.ts`),
  ])
  const build = await rolldown({
    input: { main: join(root, 'src/main.ts'), ...Object.fromEntries(sources) },
    platform: 'node',
    external: isSelfContained ? (id) => native.includes(id) : (id) => /^[^./]/.test(id),
  })
  await build.write({
    dir,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
}

function buildConsole(dir: string): void {
  const built = spawnSync(process.execPath, [join(root, 'tools/build-console.ts'), dir], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (built.status !== 0) process.exit(1)
}

type Json = Readonly<Record<string, unknown>>
type Packages = Readonly<Record<string, Json>>

function readJson(name: string): Json {
  return JSON.parse(readFileSync(join(root, name), 'utf8')) as Json
}

function writeJson(name: string, value: object): void {
  writeFileSync(join(String(out), name), `${JSON.stringify(value, null, 2)}\n`)
}

/**
 * The fields that npm needs to install and start the package, without those for development.
 * Without `engines`: npm compares them with its own Node, and the package brings another one.
 */
function manifest(): Json {
  const all = readJson('package.json')
  const kept = [
    'name',
    'version',
    'description',
    'license',
    'type',
    'bin',
    'dependencies',
    'optionalDependencies',
  ]
  const picked = Object.fromEntries(kept.filter((key) => key in all).map((key) => [key, all[key]]))
  const bundled = { bundleDependencies: Object.keys(picked['dependencies'] as Json) }
  const { node } = all['engines'] as { readonly node: string }
  return { ...picked, ...bundled, supportedNode: node, built: commit() }
}

/** Copies the packages of the lock file, without their install scripts. */
function bundlePackages(): void {
  rmSync(join(String(out), 'node_modules'), { recursive: true, force: true })
  for (const [path, { inBundle }] of Object.entries(shrinkwrap()['packages'] as Packages)) {
    if (inBundle !== true) continue
    const to = join(String(out), path)
    // Nested packages have separate entries.
    const filter = (from: string): boolean => from !== join(root, path, 'node_modules')
    cpSync(join(root, path), to, { recursive: true, filter })
    const { scripts: _, engines: __, ...kept } = readJson(join(path, 'package.json'))
    // Even without an install script, npm compiles a package with a `binding.gyp` unless `gypfile`
    // is false.
    writeJson(join(path, 'package.json'), { ...kept, gypfile: false })
  }
}

/** Pins the tested versions of everything that is installed with it. */
function shrinkwrap(): Json {
  const { packages, ...lock } = readJson('package-lock.json')
  const all = Object.entries(packages as Packages)
  const needed = all
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { hasInstallScript: _, engines: __, ...one }]) => [
      path,
      // A Node binary is for one platform: npm installs the matching one.
      one['optional'] === true ? one : { ...one, inBundle: true },
    ])
  const { built: _, supportedNode: __, ...own } = manifest()
  return { ...lock, packages: { '': own, ...Object.fromEntries(needed) } }
}

/** Version of the checkout, because a package contains neither its folder nor its time. */
function commit(): Json {
  const told = spawnSync('git', ['show', '-s', '--format=%H %cI', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [revision = '', date = ''] = told.status === 0 ? told.stdout.trim().split(' ') : []
  return { revision, date }
}
