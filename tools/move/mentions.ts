import { posix } from 'node:path'
import { movableFolders, type MovedPaths } from './moved-paths.ts'

/** Kinds of text that a move rewrites; the summary prints these words. */
export type MentionKind =
  | 'import specifiers'
  | 'markers of mutations'
  | 'test titles'
  | 'paths in pages'
  | 'links of pages'
  | 'paths in programs and tests'
  | 'paths in other files'
  | 'names of rooms'

export type CountMention = (kind: MentionKind) => void

const WORD = /[\w@.$/-]+/g
const EXTENSION = /\.[a-z]+$/
/** A shell variable with the root folder of the project, such as `$root/`, in front of a path. */
const ROOT = /^\$\w+\//
/** The same prefix in a file of the root folder, where `./` also denotes the root. */
const ROOT_OF_ROOT_FILE = /^(?:\$\w+|\.)\//

/** @returns the new form of a path that is relative to the root, to `src` or to `test`. */
function fromTheRoot(path: string, moved: MovedPaths): string | undefined {
  if (movableFolders.includes(path.split('/', 1)[0] ?? '')) {
    const after = moved.after(path)
    if (after !== undefined) return after
    return moved.files.get(`${path}.ts`)?.replace(/\.ts$/, '')
  }
  if (!EXTENSION.test(path)) return undefined
  for (const root of ['test/', 'src/']) {
    const after = moved.files.get(root + path)
    if (after !== undefined) return after.startsWith(root) ? after.slice(root.length) : after
  }
  return undefined
}

/**
 * The new form of a path in prose that consists of the last segments of a file's path, if exactly
 * one file ends with them.
 */
function byItsEnding(path: string, moved: MovedPaths): string | undefined {
  if (!EXTENSION.test(path)) return undefined
  const file = moved.onlyFileNamed(path)
  const after = file === undefined ? undefined : moved.files.get(file)
  return after?.split('/').slice(-path.split('/').length).join('/')
}

/** Whether the file is a TypeScript program, with or without JSX. */
export function isProgram(file: string): boolean {
  return /\.tsx?$/.test(file)
}

/** Whether the line is prose: any line of a page, or a comment in a program. */
function isProse(file: string, line: string): boolean {
  return file.endsWith('.md') || (isProgram(file) && /^\s*(?:\/\/|\/?\*)/.test(line))
}

function kindOf(file: string, rest: string): MentionKind {
  if (/^ > /.test(rest)) return 'test titles'
  if (file.endsWith('.md')) return 'paths in pages'
  return isProgram(file) ? 'paths in programs and tests' : 'paths in other files'
}

function moveWord(
  file: string,
  word: string,
  before: string,
  isInProse: boolean,
  moved: MovedPaths,
): string {
  const root = file.includes('/') ? ROOT : ROOT_OF_ROOT_FILE
  const [, lead = '', rest = ''] =
    /^(\/?)(.*)$/.exec(word.slice(root.exec(word)?.[0].length ?? 0)) ?? []
  if (lead === '/' && !/['"`}]/.test(before)) return word
  const path = rest.replace(/[/.$-]+$/, '')
  const after = fromTheRoot(path, moved) ?? (isInProse ? byItsEnding(path, moved) : undefined)
  if (after === undefined || after === path) return word
  return word.slice(0, word.length - rest.length) + after + rest.slice(path.length)
}

/** Rewrites the paths in a line of any file, except paths that are relative to the file. */
export function moveMentions(
  file: string,
  line: string,
  moved: MovedPaths,
  count: CountMention,
): string {
  const isInProse = isProse(file, line)
  return line.replace(WORD, (word, at: number) => {
    const after = moveWord(file, word, line[at - 1] ?? ' ', isInProse, moved)
    if (after !== word) count(kindOf(file, line.slice(at + word.length)))
    return after
  })
}

/** Rewrites the links of a page, which are relative to the page. */
export function moveLinks(
  page: string,
  text: string,
  moved: MovedPaths,
  count: CountMention,
): string {
  return text.replace(/\]\(([^)\s#:]+)(?=[)#])/g, (whole, link: string) => {
    const after = moved.relativeAfter(page, link)
    if (after === undefined) return whole
    count('links of pages')
    return `](${after}`
  })
}

/** Rewrites a line of a page that first names a folder and then folders in it, each as `name/`. */
export function moveInnerNames(line: string, moved: MovedPaths, count: CountMention): string {
  const [, folder] = /`((?:src|test|bench|tools|proto)(?:\/[\w-]+)*)\/`/.exec(line) ?? []
  if (folder === undefined) return line
  return line.replace(/`([\w-]+)\/`/g, (whole, name: string) => {
    const after = moved.after(`${folder}/${name}`)
    const isBeside = after !== undefined && posix.dirname(after) === (moved.after(folder) ?? folder)
    if (!isBeside || posix.basename(after) === name) return whole
    count('names of rooms')
    return `\`${posix.basename(after)}/\``
  })
}

/**
 * Rewrites the table of permitted imports between folders; its keys and texts are paths below
 * `src`.
 */
export function moveImportRules(text: string, moved: MovedPaths, count: CountMention): string {
  const roomAfter = (room: string): string | undefined => {
    const after = moved.after(`src/${room}`)
    if (after === undefined || !after.startsWith('src/')) return undefined
    count('names of rooms')
    return after.slice('src/'.length)
  }
  return text
    .replace(/'([\w/.-]+)'/g, (whole, room: string) => {
      const after = roomAfter(room)
      return after === undefined ? whole : `'${after}'`
    })
    .replace(/^( +)(\w+):(?= \[)/gm, (whole, indent: string, room: string) => {
      const after = roomAfter(room)
      if (after === undefined) return whole
      return `${indent}${/^\w+$/.test(after) ? after : `'${after}'`}:`
    })
    .replace(/\bsrc(?:\\\/[\w-]+)+/g, (path) => {
      const after = moved.after(path.replaceAll('\\/', '/'))
      if (after === undefined) return path
      count('names of rooms')
      return after.replaceAll('/', '\\/')
    })
}
