import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'

// Goal: sentences that people read are in the words of their field, comments fit a screen and open with their subject, and a
// name is defined once. Names that are not yet stand in words.json, and no other may join them.

const root = join(import.meta.dirname, '..')
const leftPath = join(import.meta.dirname, 'words.json')

/** Names that more than one file exports. */
const { names: namesLeft } = JSON.parse(readFileSync(leftPath, 'utf8')) as {
  readonly names: readonly string[]
}

/** Words and phrases that are gone from all sentences, with what is said in their place. */
const gone: readonly (readonly [RegExp, string])[] = [
  [/\bwhoever\b/i, 'anyone who'],
  [/\bfor good\b/i, 'permanently'],
  [/\b(is|was|are|were|be|been) laid down\b/i, 'prepared, written'],
  [/\b(be|been|is|was|not) let in\b/i, 'admitted'],
  [/\bbears? the loss\b/i, 'tolerates a failure, failure tolerance'],
  [/\bby our fault\b/i, 'unhandled error'],
  [/\bit is so already\b/i, 'no change needed'],
  [/\bno member any (longer|more)\b/i, 'removed, no longer a member'],
  [/\bnobody could say\b/i, 'outcome unknown'],
  [/\bwhat was typed\b/i, 'confirmation'],
  [/\bin service again\b/i, 'quarantine lifted'],
  [/\bleadership goes to\b/i, 'transferring leadership to'],
  [/\bhanded? leadership\b|\bleadership (is|was|could not be) handed\b/i, 'transfer leadership'],
  [/\blooked after\b/i, 'checked, renewed'],
  [/\bhas fallen silent\b/i, 'timed out'],
  [/\bis not good for\b/i, 'invalid'],
  [/\bfeature level \$?\S* ?is in force\b/i, 'the cluster is at feature level'],
  [/\bfrom then on\b/i, 'say what changes'],
  [/\btells (what|whether|of|more|one|several|values)\b/i, 'shows, lists, submits'],
]

/** Where what is said is decided by apply and part of the replicated state: other words would be another state. */
const replicated = ['src/fsm/', 'src/entities/']

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

/** A node of ESTree: its members are values, nodes, and lists of them. */
interface Tree {
  readonly type: string
  readonly [member: string]: unknown
}

function treeOf(text: string, lang: 'ts' | 'tsx' = 'ts'): Tree {
  return parseAst(text, { lang }) as unknown as Tree
}

function isTree(value: unknown): value is Tree {
  return typeof (value as Tree | null | undefined)?.type === 'string'
}

function childrenOf(node: Tree): Tree[] {
  return Object.values(node).flat().filter(isTree)
}

const sources = filesBelow('src').map((path) => {
  const text = readFileSync(join(root, path), 'utf8')
  return { path, text, tree: treeOf(text, path.endsWith('x') ? 'tsx' : 'ts') }
})

/** Texts of a tree with a space in them, holes as `…`; what `assert` says is for its authors. */
function sentencesIn(tree: Tree): string[] {
  const found: string[] = []
  const visit = (node: Tree): void => {
    if (node.type === 'ImportDeclaration') return
    if (node.type === 'CallExpression' && isForAuthors(node['callee'])) return
    if (node.type === 'Literal' && typeof node['value'] === 'string') found.push(node['value'])
    if (node.type === 'TemplateLiteral') found.push(templateText(node))
    for (const child of childrenOf(node)) visit(child)
  }
  visit(tree)
  return found.filter((text) => / /.test(text.trim()))
}

const isForAuthors = (callee: unknown): boolean =>
  isTree(callee) &&
  callee.type === 'Identifier' &&
  ['assert', 'present'].includes(String(callee['name']))

function templateText(node: Tree): string {
  const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return quasis.map(({ value }) => value.cooked).join('…')
}

describe('A sentence of the program', () => {
  test('is in the words of the field', () => {
    const found = sources
      .filter(({ path }) => !replicated.some((folder) => path.startsWith(folder)))
      .flatMap(({ path, tree }) =>
        sentencesIn(tree).flatMap((sentence) =>
          gone
            .filter(([word]) => word.test(sentence))
            .map(([word, better]) => `${path}: "${sentence}" has ${String(word)}; say: ${better}`),
        ),
      )
    expect(found).toEqual([])
  })

  test('is found where it has such a word', () => {
    const tree = treeOf('log.warn({}, `${id} was let in`)')
    expect(sentencesIn(tree).filter((text) => gone.some(([word]) => word.test(text)))).toHaveLength(
      1,
    )
  })
})

const COLUMNS_MAX = 100

function longCommentLines(text: string): number {
  return text
    .split('\n')
    .filter((line) => line.length > COLUMNS_MAX && /^\s*(\/\/|\/\*\*|\*)/.test(line)).length
}

test('comments fit 100 columns', () => {
  const found = sources.filter(({ text }) => longCommentLines(text) > 0).map(({ path }) => path)
  expect(found).toEqual([])
})

const OPENING =
  /^\s*(?:\/\*\*|\/\/|\*)? ?(What|Of|Who|Whose|Whom|Where|By|From|As|With|To|In|On|At|Until|Those|Which)\b/

/** @returns lines that open a comment without its subject, each with its number. */
function openingsIn(text: string): string[] {
  const lines = text.split('\n')
  return lines.flatMap((line, k) => {
    const isFirst =
      /^\s*\/\*\* /.test(line) ||
      (/^\s*\/\/ /.test(line) && !/^\s*\/\//.test(lines[k - 1] ?? '')) ||
      (/^\s*\* /.test(line) && /^\s*\/\*\*$/.test(lines[k - 1] ?? ''))
    return isFirst && OPENING.test(line) ? [`${k + 1}: ${line.trim()}`] : []
  })
}

test('a comment opens with its subject', () => {
  const found = sources.flatMap(({ path, text }) => openingsIn(text).map((at) => `${path}:${at}`))
  expect(found, 'name the subject first: "Names of a router", not "Of a router"').toEqual([])
  expect(openingsIn('/** Of a router. */\n// What it holds.\n\n/** A router. */')).toEqual([
    '1: /** Of a router. */',
    '2: // What it holds.',
  ])
})

/** Furniture and offices: a name says what a thing is in its field. */
const FURNITURE = /Desk|Steward|Keeper|Entrance|Asker|Gateway|Witness|Doorman|Board(?!er)/

test('no exported name is furniture or an office', () => {
  const found = sources.flatMap(({ path, tree }) =>
    exportedNames(tree)
      .filter((name) => FURNITURE.test(name))
      .map((name) => `${path}: ${name}`),
  )
  expect(found).toEqual([])
})

function exportedNames(tree: Tree): string[] {
  return childrenOf(tree)
    .filter(({ type }) => type === 'ExportNamedDeclaration')
    .flatMap(({ declaration }) => (isTree(declaration) ? [declaration] : []))
    .flatMap((node) => [node, ...((node['declarations'] ?? []) as readonly Tree[])])
    .map(({ id }) => (isTree(id) ? id['name'] : undefined))
    .filter((name) => typeof name === 'string')
}

test('an exported name is defined in one file, but for those that are not yet', () => {
  const files = new Map<string, Set<string>>()
  for (const { path, tree } of sources) {
    // The console is a program of its own, which no other room imports.
    const program = path.startsWith('src/console/') ? 'console ' : ''
    for (const exported of exportedNames(tree)) {
      const name = program + exported
      const known = files.get(name) ?? new Set()
      files.set(name, known.add(path))
    }
  }
  const twice = [...files].filter(([, paths]) => paths.size > 1).map(([name]) => name)
  expect(
    twice.sort(),
    'choose another name for a new one, and take what is defined once out of words.json',
  ).toEqual([...namesLeft].sort())
})
