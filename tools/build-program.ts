// Builds the program as it is installed: `node tools/build-program.ts OUT [--self-contained]`.
//
// OUT gets bin/flotilla, package.json and dist/, in which each source is JavaScript in a few files: Node strips no types below
// node_modules, and a start spends most of its processor time on finding a thousand modules. Packages stay what npm installs
// beside it, unless it is to be self-contained: then only those with native parts are looked up (in a folder above OUT).
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
mkdirSync(join(out, 'bin'), { recursive: true })
copyFileSync(join(root, 'bin/flotilla'), join(out, 'bin/flotilla'))
writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md'])
  copyFileSync(join(root, name), join(out, name))

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

/** What npm needs to install and start it; nothing of how it is developed. */
function manifest(): object {
  const all = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  const kept = [
    'name',
    'version',
    'description',
    'license',
    'type',
    'engines',
    'bin',
    'dependencies',
    'optionalDependencies',
  ]
  return Object.fromEntries(kept.filter((key) => key in all).map((key) => [key, all[key]]))
}
