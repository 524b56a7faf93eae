// Moves files and folders, and updates everything that refers to them: `node tools/move.ts FROM TO
// [FROM TO …]`.
//
// Paths are relative to the root of the project, in src, test, bench, tools or proto. The same run
// also rewrites imports, guard markers, pages, tables of tests and comments. At the end it prints
// the places that a person must check.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { parseArgs } from 'node:util'
import { MovedPaths, movableFolders, type Move } from './move/moved-paths.ts'
import { planMove } from './move/plan.ts'

const usage = `usage: node tools/move.ts [--dry-run] [--dirty] FROM TO [FROM TO …]

Moves each file or folder FROM to TO by git mv, and rewrites what names it: imports, markers, pages,
tables of tests, comments. A TO that ends in a slash is the folder to move FROM into. The mutations
of an attack go with its test.

  --dry-run  print what would be rewritten, and change nothing
  --dirty    also with changes that are not committed
  --help     print this`

class MoveRefused extends Error {}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      dirty: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) console.log(usage)
  else await move(positionals, { isDryRun: values['dry-run'], isDirty: values.dirty })
} catch (error) {
  const isOfUsage = (error as { readonly code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  if (!(error instanceof MoveRefused) && isOfUsage !== true) throw error
  console.error(`${(error as Error).message}\nnothing was changed`)
  process.exitCode = 2
}

async function move(
  words: readonly string[],
  { isDryRun, isDirty }: { readonly isDryRun: boolean; readonly isDirty: boolean },
): Promise<void> {
  const root = git(process.cwd(), 'rev-parse', '--show-toplevel').trim()
  if (!isDirty && git(root, 'status', '--porcelain') !== '') {
    throw new MoveRefused('there are changes that are not committed; commit them, or add --dirty')
  }
  const tracked = git(root, 'ls-files', '-z').split('\0').filter(Boolean)
  const moves = movesOf(words).flatMap((one) => [one, ...mutationsBeside(one, tracked)])
  for (const one of moves) judge(root, one, tracked)
  const moved = new MovedPaths(moves, tracked)
  judgeTogether(moves, moved)

  const plan = await planMove(root, moved, tracked)
  if (!isDryRun) carryOut(root, moved, plan.texts)
  console.log(`${isDryRun ? 'would move' : 'moved'} ${moved.files.size} files, and rewrote`)
  for (const [kind, count] of [...plan.counts].sort()) console.log(`  ${count} ${kind}`)
  console.log(`in ${plan.texts.size} files`)
  for (const place of plan.toLookAt) console.log(`look at ${place}`)
}

function movesOf(words: readonly string[]): Move[] {
  if (words.length === 0 || words.length % 2 === 1) throw new MoveRefused(usage)
  const moves: Move[] = []
  for (let at = 0; at < words.length; at += 2) {
    const [from = '', to = ''] = words.slice(at, at + 2)
    const inside = to.endsWith('/') ? posix.join(to, posix.basename(from)) : to
    moves.push({ from: posix.normalize(from).replace(/\/$/, ''), to: posix.normalize(inside) })
  }
  return moves
}

/**
 * If the test of an attack moves, its mutation files, which have the name of the test, move with
 * it.
 */
function mutationsBeside({ from, to }: Move, tracked: readonly string[]): Move[] {
  if (!from.endsWith('.test.ts') || !to.endsWith('.test.ts')) return []
  const [oldName, newName] = [from, to].map((path) => path.slice(0, -'.test.ts'.length))
  return tracked
    .filter((file) => file.endsWith('.mutation'))
    .filter((file) => file === `${oldName}.mutation` || file.startsWith(`${oldName}--`))
    .map((file) => ({ from: file, to: `${newName}${file.slice(oldName?.length)}` }))
}

function judge(root: string, { from, to }: Move, tracked: readonly string[]): void {
  for (const path of [from, to]) {
    const [top = '', ...rest] = path.split('/')
    if (!movableFolders.includes(top) || rest.length === 0) {
      throw new MoveRefused(`${path} is in none of ${movableFolders.join(', ')}`)
    }
  }
  if (!tracked.some((file) => file === from || file.startsWith(`${from}/`))) {
    throw new MoveRefused(`${from} does not exist, or git does not know it`)
  }
  if (existsSync(join(root, to))) throw new MoveRefused(`${to} exists`)
}

function judgeTogether(moves: readonly Move[], moved: MovedPaths): void {
  if (new Set(moves.map(({ from }) => from)).size < moves.length) {
    throw new MoveRefused('the same FROM is named twice')
  }
  const places = new Map<string, string>()
  for (const [from, to] of [...moved.files, ...moves.map((one) => [one.from, one.to] as const)]) {
    const other = places.get(to) ?? from
    if (other !== from) throw new MoveRefused(`${other} and ${from} would both become ${to}`)
    places.set(to, from)
  }
  const inside = moves.find(({ to }) => moved.after(to) !== undefined)
  if (inside !== undefined) throw new MoveRefused(`${inside.to} is inside of what moves`)
}

function carryOut(root: string, moved: MovedPaths, texts: ReadonlyMap<string, string>): void {
  for (const [from, to] of moved.files) {
    mkdirSync(join(root, dirname(to)), { recursive: true })
    git(root, 'mv', from, to)
    removeEmpty(root, dirname(from))
  }
  for (const [file, text] of texts) writeFileSync(join(root, file), text)
}

function removeEmpty(root: string, folder: string): void {
  const path = join(root, folder)
  if (folder === '.' || !existsSync(path) || readdirSync(path).length > 0) return
  rmdirSync(path)
  removeEmpty(root, dirname(folder))
}

function git(folder: string, ...words: readonly string[]): string {
  const done = spawnSync('git', words, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (done.status !== 0) throw new Error(`git ${words.join(' ')}: ${done.stderr.trim()}`)
  return done.stdout
}
