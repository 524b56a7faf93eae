import { parseAst } from 'rolldown/parseAst'
import type { MovedPaths } from './moved-paths.ts'

/** A node of an ESTree syntax tree. Each member is a value, a node, or a list. */
interface Tree {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

function isTree(value: unknown): value is Tree {
  return typeof (value as Tree | null | undefined)?.type === 'string'
}

/** Whether the node is `import.meta.PROPERTY`, such as `import.meta.dirname`. */
function isOfModule(node: unknown, property: string): boolean {
  if (!isTree(node) || node.type !== 'MemberExpression') return false
  const { object, property: name } = node
  return (
    isTree(object) && object.type === 'MetaProperty' && isTree(name) && name['name'] === property
  )
}

function isCallOfVitest({ callee }: Tree): boolean {
  if (!isTree(callee) || callee.type !== 'MemberExpression') return false
  return isTree(callee['object']) && callee['object']['name'] === 'vi'
}

/** @returns the nodes within a node that contain a path relative to the file. */
function pathsOf(node: Tree): unknown[] {
  const words = (node['arguments'] ?? []) as readonly unknown[]
  const [first] = words
  const paths = [node['source']]
  if (node.type === 'NewExpression' && isOfModule(words[1], 'url')) paths.push(first)
  if (node.type === 'CallExpression') {
    if (isCallOfVitest(node) && isTree(first) && /^\.\.?\//.test(String(first['value']))) {
      paths.push(first)
    }
    if (isOfModule(node['callee'], 'resolve')) paths.push(first)
    // Of the arguments of join and resolve, only the first one after the folder is relative to the
    // file.
    paths.push(...words.filter((_, at) => at > 0 && isOfModule(words[at - 1], 'dirname')))
  }
  return paths
}

/**
 * Quoted texts that may be paths relative to their file. A file without such texts is not parsed.
 */
const QUOTED = /'([^'\n]*)'|"([^"\n]*)"/g

/** Rewrites the paths by which a program refers to modules and files relative to its own folder. */
export function moveSpecifiers(
  file: string,
  text: string,
  moved: MovedPaths,
): { readonly text: string; readonly count: number } {
  const mayChange = [...text.matchAll(QUOTED)].some(
    ([, single, double]) => moved.relativeAfter(file, single ?? double ?? '') !== undefined,
  )
  if (!mayChange) return { text, count: 0 }
  const edits: { readonly start: number; readonly end: number; readonly path: string }[] = []
  const visit = (node: Tree): void => {
    for (const path of pathsOf(node)) {
      if (!isTree(path) || path.type !== 'Literal' || typeof path['value'] !== 'string') continue
      const isPackage = path === node['source'] && !path['value'].startsWith('.')
      const after = isPackage ? undefined : moved.relativeAfter(file, path['value'])
      if (after !== undefined) edits.push({ start: path.start + 1, end: path.end - 1, path: after })
    }
    for (const child of Object.values(node).flat()) if (isTree(child)) visit(child)
  }
  visit(parseAst(text, { lang: file.endsWith('.tsx') ? 'tsx' : 'ts' }) as unknown as Tree)
  let result = text
  for (const { start, end, path } of edits.toSorted((a, b) => b.start - a.start)) {
    result = result.slice(0, start) + path + result.slice(end)
  }
  return { text: result, count: edits.length }
}
