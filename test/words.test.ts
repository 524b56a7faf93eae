import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'

import { titlesIn } from './support/titles.ts'

// Goal: sentences of the program are in the words of the field, comments fit 100 columns, and a
// name is defined once. words.json has the exceptions: names that are defined twice, and how often
// words of the old style occur. Neither may grow.

const root = join(import.meta.dirname, '..')
const leftPath = join(import.meta.dirname, 'words.json')

/** Names that more than one file exports, and the counts of old words. */
const { names: namesLeft, oldWords: oldWordsLeft } = JSON.parse(readFileSync(leftPath, 'utf8')) as {
  readonly names: readonly string[]
  /** Words of the old style that are left, by the kind of text. */
  readonly oldWords: Readonly<Record<string, Readonly<Record<string, number>>>>
}

/** Words and phrases that no sentence may contain, with their replacements. */
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

/**
 * Folders whose texts become part of the replicated state: other texts would produce another state.
 */
const replicated = ['src/fsm/', 'src/entities/']

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules/'))
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

/**
 * Texts of a tree that contain a space, with `…` for placeholders, except the texts of `assert`,
 * which are for developers.
 */
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

describe('A sentence in the program’s output', () => {
  test('contains none of the words that the style guide excludes', () => {
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

  test('is reported as a fault if it contains a word that the style guide excludes', () => {
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

test('comments in src are at most 100 columns wide', () => {
  const found = sources.filter(({ text }) => longCommentLines(text) > 0).map(({ path }) => path)
  expect(found).toEqual([])
})

/** Signs of the old style: a reader has to guess who does what. */
const oldStyle: Readonly<Record<string, RegExp>> = {
  told: /\b(un)?told\b/gi,
  tell: /\btells?\b|\btelling\b/gi,
  whoever: /\bwho(m|se)?ever\b/gi,
  anew: /\banew\b/gi,
  'for good': /\bfor good\b/gi,
  'by then': /\bby then\b/gi,
  'goes on': /\b(goes|go|went|going) on\b/gi,
  'let in': /\b(is|are|be|was|were|been) let in\b/gi,
  'is taken': /\b(is|are) taken\b/gi,
  'that there is': /\bthat there (is|are)\b/gi,
  'of its own': /\bof (its|their) own\b(?! (?:term|log)\b)/gi,
  'at all times': /\bat all times\b/gi,
  'has its say': /\bha(s|ve) (its|their) say\b/gi,
  mend: /\bmend(s|ed)?\b/gi,
  deed: /\bdeeds?\b/gi,
  // A relative clause instead of a noun; a question is none.
  'what … is': /\bwhat (?:[\w-]+ ){0,3}(?:is|was|are|were)\b(?![^.|\n]*\?)/gi,
  'who …': /(?:^|[.:;|] +|[*/] +|'|`)(?:What|Who|Whose|Whom) [a-z]+(?![^.|\n]*\?)/gm,
  stands: /\bst(?:ands?|ood)\b(?! (?:for|still)\b)/gi,
  'is asked': /\b(?:is|are|be|was|were|been) asked\b/gi,
  'the family': /\bfamily(?='s\b| \b(?!of addresses))(?<!address family)|\bof the family\b/gi,
  stock: /\bstock\b(?!\/)/gi,
  'a moment ago': /\ba moment ago\b/gi,
  'but for': /\bbut for\b/gi,
  'so many': /\bso many\b/gi,
  'whatever it': /\bwhat(?:so)?ever (?:it|they|the)\b/gi,
  judged: /\b(?:is|are|was|were|be|been) judged\b/gi,
}

const oldNames: Readonly<Record<string, RegExp>> = {
  Needs: /Needs$/,
  Parts: /Parts$/,
  Told: /[Tt]old(?![a-z])|[Tt]ells?(?![a-z])/,
  Ask: /^Ask|Asked|asked/,
  News: /News$/,
  Place: /Place$/,
  because: /[Bb]ecause/,
}

/** Comments of a source, each without its markers. */
function commentsIn(text: string): string {
  return [...text.matchAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm)].map(([comment]) => comment).join('\n')
}

function countOf(pattern: RegExp, texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + [...text.matchAll(pattern)].length, 0)
}

const notOurPages = /^(?:node_modules|\.|dist|CHANGELOG)/
/**
 * Folders that contain no pages of this project: packages, and the copies of pages that `make docs`
 * writes.
 */
const notOurFolders = /(?:^|\/)node_modules$|^tools\/site\/pages$/

/** The pages of the docs, the decisions and the README of each folder. */
function pagesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => folder !== '.' || !notOurPages.test(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return notOurFolders.test(path) ? [] : pagesBelow(path)
      return entry.name.endsWith('.md') ? [path] : []
    })
}

/** How often each old-style word occurs, by the kind of text. */
function oldWords(): Record<string, Record<string, number>> {
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')
  const tests = filesBelow('test')
    .filter((file) => file !== 'test/words.test.ts')
    .map(read)
  const tools = [...filesBelow('bench'), ...filesBelow('tools')].map(read)
  const texts = {
    comments: sources.map(({ text }) => commentsIn(text)),
    sentences: sources.flatMap(({ tree }) => sentencesIn(tree)),
    titles: tests.flatMap((text) => titlesIn(text)),
    'comments of tests and tools': [...tests, ...tools].map(commentsIn),
    docs: pagesBelow('.').map(read),
  }
  const counts: Record<string, Record<string, number>> = {}
  for (const [kind, all] of Object.entries(texts)) {
    counts[kind] = countsOf(oldStyle, (pattern) => countOf(pattern, all))
  }
  const names = sources.flatMap(({ tree }) => exportedNames(tree))
  counts['names'] = countsOf(oldNames, (pattern) => names.filter((one) => pattern.test(one)).length)
  return counts
}

function countsOf(
  words: Readonly<Record<string, RegExp>>,
  count: (pattern: RegExp) => number,
): Record<string, number> {
  const found = Object.entries(words).map(([word, pattern]) => [word, count(pattern)] as const)
  return Object.fromEntries(found.filter(([, times]) => times > 0))
}

test('the number of words that the style guide excludes never increases in comments, test titles, docs and exported names', () => {
  const counts = oldWords()
  const grown = Object.entries(counts).flatMap(([kind, words]) =>
    Object.entries(words)
      .filter(([word, times]) => times > (oldWordsLeft[kind]?.[word] ?? 0))
      .map(
        ([word, times]) =>
          `${kind}: "${word}" ${times} times, ${oldWordsLeft[kind]?.[word] ?? 0} before`,
      ),
  )
  const isRecording = process.env['FLOTILLA_RECORD'] === '1'
  if (isRecording && grown.length === 0) {
    const left = { names: namesLeft, oldWords: counts }
    writeFileSync(leftPath, `${JSON.stringify(left, null, 2)}\n`)
  }
  expect(grown, 'name the actor and say what it sends, reports, admits or continues').toEqual([])
  expect(
    isRecording ? counts : oldWordsLeft,
    'record that there are fewer: FLOTILLA_RECORD=1',
  ).toEqual(counts)
  expect(
    countsOf(oldStyle, (pattern) => countOf(pattern, ['it is told', 'goes on, told'])),
  ).toEqual({ told: 2, 'goes on': 1 })
})

/** Names from furniture and offices, which do not describe the thing in terms of its field. */
const FURNITURE = /Desk|Steward|Keeper|Entrance|Asker|Gateway|Witness|Doorman|Board(?!er)/

test('no exported name uses a metaphor from everyday life, such as furniture or an office', () => {
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

test('an exported name is defined in only one file, except for the recorded names', () => {
  const files = new Map<string, Set<string>>()
  for (const { path, tree } of sources) {
    // The console is a separate program that no other folder imports.
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
    'choose another name for a new export, and remove names that are defined once from words.json',
  ).toEqual([...namesLeft].sort())
})
