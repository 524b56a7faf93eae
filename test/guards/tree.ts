import { parseSync } from 'rolldown/utils'

/** A node of an ESTree syntax tree. Each member is a value, a node, or a list. */
export interface Tree {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

export interface Comment {
  /** Text of the comment without its slashes. */
  readonly value: string
  readonly start: number
  readonly end: number
}

export interface Parsed {
  readonly program: Tree
  readonly comments: readonly Comment[]
}

/** Meaning of a name: a variable or type, a property, or a fixed word such as `undefined`. */
export type Role = 'variable' | 'property' | 'itself'

export function isTree(value: unknown): value is Tree {
  return typeof (value as Tree | null | undefined)?.type === 'string'
}

/** Members that describe the notation of a node and not its meaning. */
const WRITTEN = new Set(['raw', 'shorthand', 'start', 'end', 'range', 'directive'])

/** @returns null if the text is not valid TypeScript. */
export function parse(text: string, lang: 'ts' | 'tsx' = 'ts'): Parsed | null {
  const { program, comments, errors } = parseSync(`source.${lang}`, text, {
    lang,
    preserveParens: false,
  })
  return errors.length > 0 ? null : { program: program as unknown as Tree, comments }
}

/** @returns the members of a node that determine its meaning. */
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
/** Words that the parser treats as identifiers and that belong to the language. */
const WORDS = new Set(['undefined', 'NaN', 'Infinity', 'const', 'this', 'arguments', 'constructor'])

function isPropertyName(parent: Tree | null, member: string): boolean {
  if (parent === null || parent['computed'] === true) return false
  return (KEYED.test(parent.type) && member === 'key') || PROPERTIES[parent.type] === member
}

/**
 * @returns null for a node that is not a name. A property whose name is a string, as in `{ 'a': 1
 * }`, also has a name.
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

/** A node, or consecutive nodes of a list, with its context. */
export interface Visit {
  readonly node: Tree
  readonly parent: Tree | null
  readonly member: string
  /** The list that contains the node, and the node's index in it. */
  readonly list: readonly unknown[] | null
  readonly at: number
}

/**
 * Visits a node and all nodes below it. If the visitor returns false, the children of the node are
 * skipped.
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
 * @returns whether the node is a statement in a list, or a member of a class, object or interface.
 */
export function isListed({ list, member }: Visit): boolean {
  return list !== null && LISTS.has(member)
}
