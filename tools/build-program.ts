// Builds the installed program: `node tools/build-program.ts OUT [--self-contained]`.
//
// OUT gets bin/flotilla, package.json, the sources as a few JavaScript files in dist/, and the
// console in dist/console. The sources are bundled for two reasons: Node.js does not strip types
// below node_modules, and loading a thousand modules would take most of the time of a start. OUT
// also gets the packages with which the program was tested, so that npm puts them into the archive:
// npm 11 ignores a shrinkwrap file and would run their install scripts. A self-contained program
// has these packages in its own files, except those with native code, which Node.js finds in a
// folder above OUT.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { rolldown } from 'rolldown'

const root = resolve(import.meta.dirname, '..')
const native = ['argon2', 'classic-level']
/** Programs in src/threads that the program starts as threads or processes. */
const programs = ['wal-thread', 'raft-thread', 'schema-thread', 'certificate-thread', 'state-probe']

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
  const sources = programs.map((name) => [name, join(root, `src/threads/${name}.ts`)])
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
 * The fields of package.json that npm needs to install and start the package. Fields for
 * development are omitted, and also `engines`: npm would compare it with its own Node.js, although
 * the package contains another one.
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
    // Packages within this package are copied by their own entries in the lock file.
    const filter = (from: string): boolean => from !== join(root, path, 'node_modules')
    cpSync(join(root, path), to, { recursive: true, filter })
    const { scripts: _, engines: __, ...kept } = readJson(join(path, 'package.json'))
    // Even without an install script, npm compiles a package with a `binding.gyp` unless `gypfile`
    // is false.
    writeJson(join(path, 'package.json'), { ...kept, gypfile: false })
  }
}

/** A shrinkwrap file that fixes the tested versions of all dependencies. */
function shrinkwrap(): Json {
  const { packages, ...lock } = readJson('package-lock.json')
  const all = Object.entries(packages as Packages)
  const needed = all
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { hasInstallScript: _, engines: __, ...one }]) => [
      path,
      // A binary of Node.js is for one platform; npm installs the one that matches.
      one['optional'] === true ? one : { ...one, inBundle: true },
    ])
  const { built: _, supportedNode: __, ...own } = manifest()
  return { ...lock, packages: { '': own, ...Object.fromEntries(needed) } }
}

/** Commit and time of the checkout, because an installed package has no Git data. */
function commit(): Json {
  const told = spawnSync('git', ['show', '-s', '--format=%H %cI', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [revision = '', date = ''] = told.status === 0 ? told.stdout.trim().split(' ') : []
  return { revision, date }
}
