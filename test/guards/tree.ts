import { parseSync } from 'rolldown/utils'

/** A node of ESTree: its members are values, nodes, and lists of them. */
export interface Tree {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

export interface Comment {
  /** Without the slashes. */
  readonly value: string
  readonly start: number
  readonly end: number
}

export interface Parsed {
  readonly program: Tree
  readonly comments: readonly Comment[]
}

/** A name stands for a variable or type, for a property, or for itself, as `undefined` does. */
export type Role = 'variable' | 'property' | 'itself'

export function isTree(value: unknown): value is Tree {
  return typeof (value as Tree | null | undefined)?.type === 'string'
}

/** Members about the notation of a node, not its meaning. */
const WRITTEN = new Set(['raw', 'shorthand', 'start', 'end', 'range', 'directive'])

/** @returns null when the text is no TypeScript. */
export function parse(text: string, lang: 'ts' | 'tsx' = 'ts'): Parsed | null {
  const { program, comments, errors } = parseSync(`source.${lang}`, text, {
    lang,
    preserveParens: false,
  })
  return errors.length > 0 ? null : { program: program as unknown as Tree, comments }
}

/** @returns the members of a node that define its meaning. */
export function membersOf(node: Tree): [string, unknown][] {
  const isByText = node.type === 'Literal' && ('regex' in node || 'bigint' in node)
  return Object.entries(node).filter(
    ([name]) => !WRITTEN.has(name) && !(isByText && name === 'value'),
  )
}

const KEYED =
  /^(?:Property|MethodDefinition|PropertyDefinition|AccessorProperty|TSAbstract\w+|TSPropertySignature|TSMethodSignature)$/
const PROPERTIES: Readonly<Record<string, string>> = {
  MemberExpression: 'property',
  TSQualifiedName: 'right',
  ImportSpecifier: 'imported',
  ExportSpecifier: 'exported',
  TSEnumMember: 'id',
  TSNamedTupleMember: 'label',
}
/** Identifiers to the parser, and words of the language to a reader. */
const WORDS = new Set(['undefined', 'NaN', 'Infinity', 'const', 'this', 'arguments', 'constructor'])

function isPropertyName(parent: Tree | null, member: string): boolean {
  if (parent === null || parent['computed'] === true) return false
  return (KEYED.test(parent.type) && member === 'key') || PROPERTIES[parent.type] === member
}

/**
 * @returns null for a node that is no name. A property named by a text, as in `{ 'a': 1 }`, has a
 * name, too.
 */
export function nameOf(
  node: Tree,
  parent: Tree | null,
  member: string,
): { readonly name: string; readonly role: Role } | null {
  const isProperty = isPropertyName(parent, member)
  if (node.type === 'PrivateIdentifier')
    return { name: `#${String(node['name'])}`, role: 'property' }
  if (node.type === 'Literal' && isProperty && /^[\w$]+$/.test(String(node['value']))) {
    return { name: String(node['value']), role: 'property' }
  }
  if (node.type !== 'Identifier') return null
  const name = String(node['name'])
  if (WORDS.has(name) || parent?.type === 'MetaProperty') return { name, role: 'itself' }
  return { name, role: isProperty ? 'property' : 'variable' }
}

/** A node, or a run of nodes of one list, with what it belongs to. */
export interface Visit {
  readonly node: Tree
  readonly parent: Tree | null
  readonly member: string
  /** The list that the node is in, and its place there. */
  readonly list: readonly unknown[] | null
  readonly at: number
}

/**
 * Visits a node and all below it; if a visitor returns false, the walk skips the children of its
 * node.
 */
export function walk(
  node: Tree,
  visitor: (visit: Visit) => boolean | void,
  from: Omit<Visit, 'node'> = { parent: null, member: '', list: null, at: 0 },
): void {
  if (visitor({ node, ...from }) === false) return
  for (const [member, value] of Object.entries(node)) {
    if (isTree(value)) walk(value, visitor, { parent: node, member, list: null, at: 0 })
    if (!Array.isArray(value)) continue
    for (const [at, child] of value.entries()) {
      if (isTree(child)) walk(child, visitor, { parent: node, member, list: value, at })
    }
  }
}

const LISTS = new Set(['body', 'consequent', 'cases', 'properties', 'members'])

/**
 * @returns whether the node is a statement of a list, or a member of a class, an object or an
 * interface.
 */
export function isListed({ list, member }: Visit): boolean {
  return list !== null && LISTS.has(member)
}
